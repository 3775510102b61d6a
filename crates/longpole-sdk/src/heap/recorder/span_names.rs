//! Names of spans by number: texts of the program itself, which stay.

use std::ptr;
use std::sync::OnceLock;

/// Names that are kept; a program has as many as its source has spans.
const NAMES: usize = 1 << 10;

/// Places that are tried for a name.
const TRIES: usize = 16;

/// The table. One thread at a time adds names.
pub(super) struct SpanNames([OnceLock<&'static str>; NAMES]);

impl SpanNames {
    pub(super) const fn new() -> Self {
        Self([const { OnceLock::new() }; NAMES])
    }

    /// The number of a name; 0 if it is empty or there is no room. Two texts that are the same may have two numbers.
    pub(super) fn number(&self, name: &'static str) -> u32 {
        if name.is_empty() {
            return 0;
        }
        let hash = (name.as_ptr().addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let places = (0..TRIES).map(|more| ((hash >> 54) as usize + more) % NAMES);
        for place in places {
            if ptr::eq(*self.0[place].get_or_init(|| name), name) {
                return place as u32 + 1;
            }
        }
        0
    }

    /// The name with a number.
    pub(super) fn name(&self, number: u32) -> &'static str {
        let place = (number as usize).checked_sub(1);
        place.and_then(|place| self.0.get(place)?.get().copied()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let names = SpanNames::new();
        let (cart, pay) = (names.number("GET /cart"), names.number("POST /pay"));
        assert_eq!([names.name(cart), names.name(pay), names.name(0), names.name(9_999)], ["GET /cart", "POST /pay", "", ""]);
        assert_eq!((names.number("GET /cart"), names.number("")), (cart, 0));
        let many: &'static str = Box::leak("x".repeat(3_000).into_boxed_str());
        let numbers: Vec<u32> = (0..3_000).map(|start| names.number(&many[start..])).collect();
        assert!(numbers.contains(&0), "full");
        assert!(numbers.iter().zip(0..).all(|(number, start)| *number == 0 || names.name(*number) == &many[start..]));
    }
}
