//! What people call a node, a pole or a function: `s12`, `p1`, `f3`.

use std::fmt;
use std::str::FromStr;

use longpole_model::{FunctionId, Id, NodeId, PoleId};

/// What people call a node, a pole or a function; stable inside a sealed recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Handle {
    /// `s1` is the run.
    Node(NodeId),
    /// `p1` is the first pole.
    Pole(PoleId),
    /// `f1` is the first function.
    Function(FunctionId),
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handle::Node(id) => write!(f, "s{}", id.place() + 1),
            Handle::Pole(id) => write!(f, "p{}", id.place() + 1),
            Handle::Function(id) => write!(f, "f{}", id.place() + 1),
        }
    }
}

/// The last place that an id can have.
const LAST: usize = u32::MAX as usize - 1;

/// The text is no handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandleError;

impl fmt::Display for HandleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a handle such as s12, p1 or f3")
    }
}

impl std::error::Error for HandleError {}

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Self, HandleError> {
        let kind = text.chars().next().ok_or(HandleError)?;
        let digits = &text[kind.len_utf8()..];
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(HandleError);
        }
        // No list is so long that the last id is in it, so a number that is too large names nothing.
        fn id<I: Id>(index: usize) -> I {
            I::at(index.min(LAST))
        }
        let index = digits.parse::<usize>().map_err(|_| HandleError)? - 1;
        match kind {
            's' => Ok(Handle::Node(id(index))),
            'p' => Ok(Handle::Pole(id(index))),
            'f' => Ok(Handle::Function(id(index))),
            _ => Err(HandleError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_spelled_from_one() {
        for handle in [Handle::Node(NodeId::RUN), Handle::Pole(PoleId::at(11)), Handle::Function(FunctionId::at(2))] {
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
        assert_eq!("s1".parse(), Ok(Handle::Node(NodeId::RUN)));
        for wrong in ["", "s", "s0", "s01", "x1", "s-1", "s+1", "1", "s99999999999999999999", "ß1"] {
            assert_eq!(wrong.parse::<Handle>(), Err(HandleError), "{wrong}");
        }
    }
}
