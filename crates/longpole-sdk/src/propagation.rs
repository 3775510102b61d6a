//! What travels with a span's ids: `tracestate` and `baggage`. They are handed on as they came; nobody here reads them.

/// Longest `tracestate` that is handed on. W3C asks for 512 at least; a cut one would be wrong, so a longer one is left out.
const MAX_TRACESTATE_BYTES: usize = 4 << 10;

/// Longest `baggage` that is handed on: what W3C asks for.
const MAX_BAGGAGE_BYTES: usize = 8 << 10;

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) tracestate: Option<String>,
    pub(crate) baggage: Option<String>,
}

impl Carried {
    /// What a request brought; `None` where that is nothing.
    pub(crate) fn read(get: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let header = |name, limit| {
            let value = get(name)?.trim().to_owned();
            // What could not stand in a header must not be put into one.
            (!value.is_empty() && value.len() <= limit && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))).then_some(value)
        };
        let carried = Self { tracestate: header("tracestate", MAX_TRACESTATE_BYTES), baggage: header("baggage", MAX_BAGGAGE_BYTES) };
        (carried != Self::default()).then_some(carried)
    }

    pub(crate) fn write(&self, mut set: impl FnMut(&'static str, &str)) {
        if let Some(tracestate) = &self.tracestate {
            set("tracestate", tracestate);
        }
        if let Some(baggage) = &self.baggage {
            set("baggage", baggage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tracestate: &str, baggage: &str) -> Option<Carried> {
        Carried::read(&|name| match name {
            "tracestate" => Some(tracestate.into()),
            "baggage" => Some(baggage.into()),
            _ => None,
        })
    }

    #[test]
    fn what_came_goes_on_as_it_was() {
        let carried = read("a=1,b=2", " user=ann;ttl=3 ").unwrap();
        let mut written = Vec::new();
        carried.write(|name, value| written.push(format!("{name}: {value}")));
        assert_eq!(written, ["tracestate: a=1,b=2", "baggage: user=ann;ttl=3"]);
    }

    #[test]
    fn what_no_header_can_hold_is_left_out() {
        assert_eq!(read("", "a=1\r\nevil: 1"), None);
        assert_eq!(read(&"x".repeat(5_000), ""), None);
        assert_eq!(read("t=1", &"x".repeat(9_000)).unwrap().baggage, None);
    }
}
