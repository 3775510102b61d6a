//! The services of a server and their calls, as traces show them.
//!
//! ```text
//! shop  ├──────────────────┤          a request to shop: nothing called it
//! cart      ├────────┤                a request to cart, and a call from shop to cart
//! cart        ├────┤                  work inside cart: neither
//! ```

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use longpole_model::{Span, SpanId, StatusCode};
use serde::Serialize;

/// The services of a server and their calls.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceMapView {
    /// Traces that the map is made from.
    pub traces: usize,
    /// Whether there are more of them in that time, all older, or more services and calls than a map has: 16 MB of them.
    pub truncated: bool,
    /// The services, by name.
    pub services: Vec<MappedServiceView>,
    /// The calls between them, by caller and callee.
    pub calls: Vec<ServiceCallsView>,
}

/// A service of a map.
#[derive(Debug, Clone, Serialize)]
pub struct MappedServiceView {
    /// Its name.
    pub name: String,
    /// Its requests: spans that no span of the same service called.
    pub requests: RequestsView,
}

/// Calls from one service to another.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceCallsView {
    /// The service that calls.
    pub caller: String,
    /// The service that answers.
    pub callee: String,
    /// The requests that these calls made, as the callee timed them.
    pub requests: RequestsView,
}

/// Requests: how many, and how long they took.
#[derive(Debug, Clone, Serialize)]
pub struct RequestsView {
    /// How many.
    pub count: usize,
    /// How many failed.
    pub errors: usize,
    /// Half of them took no longer.
    pub median_nanos: i64,
    /// 95 % of them took no longer.
    pub p95_nanos: i64,
    /// 99 % of them took no longer.
    pub p99_nanos: i64,
}

/// Requests that are being counted.
#[derive(Debug, Default)]
struct Requests {
    durations: Vec<i64>,
    errors: usize,
}

impl Requests {
    fn add(&mut self, span: &Span) {
        self.durations.push(span.duration_nanos());
        self.errors += usize::from(span.status.code == StatusCode::Error);
    }

    fn view(mut self) -> RequestsView {
        self.durations.sort_unstable();
        // The smallest duration that at least this share of all does not exceed.
        let quantile = |percent: usize| {
            let rank = (self.durations.len() * percent).div_ceil(100).max(1);
            self.durations.get(rank - 1).copied().unwrap_or(0)
        };
        RequestsView {
            count: self.durations.len(),
            errors: self.errors,
            median_nanos: quantile(50),
            p95_nanos: quantile(95),
            p99_nanos: quantile(99),
        }
    }
}

/// Makes a map, trace by trace.
#[derive(Debug, Default)]
pub struct ServiceMap {
    traces: usize,
    services: BTreeMap<String, Requests>,
    calls: BTreeMap<(String, String), Requests>,
    room: Room,
}

/// The memory of a map, about.
#[derive(Debug, Default)]
struct Room {
    bytes: usize,
    is_cut: bool,
}

/// Bytes of a map from which on no other service or pair of them comes into it.
const BYTES_MAX: usize = 16 << 20;

/// What a service or a pair of them takes beside its names, about, and a request.
const ENTRY_BYTES: usize = 128;
const REQUEST_BYTES: usize = 16;

impl ServiceMap {
    /// Adds the spans of a trace.
    pub fn add(&mut self, spans: &[Span]) {
        self.traces += 1;
        let service_of: HashMap<SpanId, &str> = spans.iter().map(|span| (span.span_id, span.service_name())).collect();
        for span in spans {
            let service = span.service_name();
            let caller = span.parent_span_id.and_then(|parent| service_of.get(&parent)).copied();
            if caller == Some(service) {
                continue;
            }
            self.room.count(&mut self.services, service.to_owned(), service.len(), span);
            if let Some(caller) = caller {
                let names = caller.len() + service.len();
                self.room.count(&mut self.calls, (caller.to_owned(), service.to_owned()), names, span);
            }
        }
    }

    /// Memory that it takes, about.
    pub fn bytes(&self) -> usize {
        self.room.bytes
    }

    /// Callers with their callees, and how many requests each made.
    pub fn calls(&self) -> impl Iterator<Item = (&(String, String), usize)> {
        self.calls.iter().map(|(pair, requests)| (pair, requests.durations.len()))
    }

    /// The map of the traces that were added; `of` is how many there are.
    pub fn view(self, of: usize) -> ServiceMapView {
        let services = self.services.into_iter().map(|(name, requests)| MappedServiceView { name, requests: requests.view() });
        let calls = self.calls.into_iter();
        let calls = calls.map(|((caller, callee), requests)| ServiceCallsView { caller, callee, requests: requests.view() });
        ServiceMapView {
            traces: self.traces,
            truncated: of > self.traces || self.room.is_cut,
            services: services.collect(),
            calls: calls.collect(),
        }
    }
}

impl Room {
    /// Counts a request, if it is known what it goes to, or if there is room for these bytes of names.
    fn count<K: Ord>(&mut self, requests: &mut BTreeMap<K, Requests>, key: K, names: usize, span: &Span) {
        let of_key = match requests.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) if self.bytes + ENTRY_BYTES + names <= BYTES_MAX => {
                self.bytes += ENTRY_BYTES + names;
                new.insert(Requests::default())
            }
            Entry::Vacant(_) => {
                self.is_cut = true;
                return;
            }
        };
        of_key.add(span);
        self.bytes += REQUEST_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use longpole_model::{AttributeValue, Attributes, Resource, StatusCode, text};

    use super::*;

    fn requests(durations: impl IntoIterator<Item = i64>) -> RequestsView {
        Requests { durations: durations.into_iter().collect(), errors: 0 }.view()
    }

    #[test]
    fn a_flood_of_services_ends_the_map_and_says_so() {
        let mut span = text::parse("home  0..20ms  shop\n").unwrap().spans[0].clone();
        let mut map = ServiceMap::default();
        for number in 0..6_000 {
            let mut attributes = Attributes::default();
            attributes.push("service.name", AttributeValue::Str(format!("{number:04000}").as_str().into()));
            span.resource = Arc::new(Resource { attributes });
            map.add(std::slice::from_ref(&span));
        }
        assert!((15 << 20..=BYTES_MAX + 6_000 * REQUEST_BYTES).contains(&map.bytes()));
        let view = map.view(6_000);
        assert!(view.truncated && view.services.len() < 6_000 && view.traces == 6_000);
    }

    #[test]
    fn quantiles_are_durations_that_were_seen() {
        let of_hundred = requests((1..=100).rev());
        assert_eq!((of_hundred.count, of_hundred.median_nanos, of_hundred.p95_nanos, of_hundred.p99_nanos), (100, 50, 95, 99));
        let of_one = requests([7]);
        assert_eq!((of_one.median_nanos, of_one.p99_nanos), (7, 7));
        let of_none = requests([]);
        assert_eq!((of_none.count, of_none.p99_nanos), (0, 0));
    }

    /// The map of traces in the notation; spans whose name begins with `bad` fail. A line for each service and each call.
    fn map_of(traces: &[&str]) -> Vec<String> {
        let mut map = ServiceMap::default();
        for trace in traces {
            let mut spans = text::parse(trace).unwrap().spans;
            for span in spans.iter_mut().filter(|span| span.name.starts_with("bad")) {
                span.status.code = StatusCode::Error;
            }
            map.add(&spans);
        }
        let view = map.view(traces.len());
        assert_eq!((view.traces, view.truncated), (traces.len(), false));
        let line = |name: String, of: RequestsView| {
            let millis = |nanos: i64| nanos / 1_000_000;
            format!("{name}: {} requests, {} errors, {} ms, {} ms", of.count, of.errors, millis(of.median_nanos), millis(of.p95_nanos))
        };
        let services = view.services.into_iter().map(|service| line(service.name, service.requests));
        let calls = view.calls.into_iter().map(|calls| line(format!("{} > {}", calls.caller, calls.callee), calls.requests));
        services.chain(calls).collect()
    }

    #[test]
    fn requests_are_what_another_service_called_or_nobody() {
        let bought = "\
buy          0..100ms  shop
  POST       5..60ms   shop
    charge  10..50ms   payment
      bad   12..40ms   payment
    bad     52..58ms   payment
  log       60..90ms   shop
";
        // Work inside a service is no request, whether it fails or not.
        assert_eq!(
            map_of(&[bought, "home  0..20ms  shop\n"]),
            [
                "payment: 2 requests, 1 errors, 6 ms, 40 ms",
                "shop: 2 requests, 0 errors, 20 ms, 100 ms",
                "shop > payment: 2 requests, 1 errors, 6 ms, 40 ms",
            ]
        );
    }

    #[test]
    fn services_may_call_each_other_in_turn_and_parents_may_be_missing() {
        let there_and_back = "\
ask          0..100ms  a
  answer     5..90ms   b
    ask      7..80ms   a
      bad    8..70ms   b
";
        assert_eq!(
            map_of(&[there_and_back, "late  0..3ms  b  parent 99\n"]),
            [
                "a: 2 requests, 0 errors, 73 ms, 100 ms",
                "b: 3 requests, 1 errors, 62 ms, 85 ms",
                "a > b: 2 requests, 1 errors, 62 ms, 85 ms",
                "b > a: 1 requests, 0 errors, 73 ms, 73 ms",
            ]
        );
        assert_eq!(map_of(&[]), [""; 0]);
    }
}
