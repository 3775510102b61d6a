//! What people call a node, a pole or a function: `s12`, `p1`, `f3`.

use std::fmt;
use std::str::FromStr;

use longpole_model::{FunctionId, Id};

/// What people call a node, a pole or a function; stable inside a sealed recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Handle {
    /// `s1` is node 0.
    Node(usize),
    /// `p1` is pole 0.
    Pole(usize),
    /// `f1` is function 0.
    Function(FunctionId),
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Handle::Node(i) => write!(f, "s{}", i + 1),
            Handle::Pole(i) => write!(f, "p{}", i + 1),
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
            's' => Ok(Handle::Node(index)),
            'p' => Ok(Handle::Pole(index)),
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
        for handle in [Handle::Node(0), Handle::Pole(11), Handle::Function(FunctionId::at(2))] {
            assert_eq!(handle.to_string().parse(), Ok(handle));
        }
        assert_eq!("s1".parse(), Ok(Handle::Node(0)));
        for wrong in ["", "s", "s0", "s01", "x1", "s-1", "s+1", "1", "s99999999999999999999", "ß1"] {
            assert_eq!(wrong.parse::<Handle>(), Err(HandleError), "{wrong}");
        }
    }
}
