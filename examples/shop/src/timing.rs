//! All durations and quantities: the only numbers that determine the answer.

use std::time::Duration;

/// Time of the bank to validate a card.
pub const VALIDATION: Duration = Duration::from_millis(120);

/// CPU time of the cart to add up its lines.
pub const ADDING_UP: Duration = Duration::from_millis(12);

/// CPU time of payment to sign a receipt.
pub const SIGNING: Duration = Duration::from_millis(6);

/// Customers who buy at the same time.
pub const CUSTOMERS: usize = 2;

/// Checkouts of each customer, one after the other.
pub const CHECKOUTS: usize = 8;
