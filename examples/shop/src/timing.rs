//! How long things take, and how much is bought: the only numbers from which the answer follows.

use std::time::Duration;

/// How long the bank takes to say that a card is good.
pub const VALIDATION: Duration = Duration::from_millis(120);

/// How long the cart burns CPU to add up its lines.
pub const ADDING_UP: Duration = Duration::from_millis(12);

/// How long payment burns CPU to sign a receipt.
pub const SIGNING: Duration = Duration::from_millis(6);

/// Customers who buy at the same time.
pub const CUSTOMERS: usize = 2;

/// Checkouts of each customer, one after the other.
pub const CHECKOUTS: usize = 8;
