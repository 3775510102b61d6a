//! Profiles of a server: calls added up over any number of them, and two sums side by side.

mod diff;
mod levels;
#[cfg(test)]
mod testing;
mod tree;

pub use self::diff::{FunctionChange, ProfileDiff};
pub use self::levels::Levels;
pub use self::tree::{FunctionSum, NodeOfTwo, NodeView, OTHER, ProfileTree};
