//! Profiles of a server: calls added up over any number of them, two sums side by side, and what grows over time.

mod chained;
mod diff;
mod growth;
mod levels;
#[cfg(test)]
mod testing;
mod tree;

pub use self::chained::{Chained, ProcessValues};
pub use self::diff::{FunctionChange, ProfileDiff};
pub use self::growth::{Growth, GrowthPoint, Trend};
pub use self::levels::Levels;
pub use self::tree::{FunctionSum, NodeOfTwo, NodeView, OTHER, ProfileTree};
