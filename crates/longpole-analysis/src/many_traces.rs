//! The long poles of many traces together: what to fix first in an operation, and what its requests would gain.
//!
//! ```text
//! trace    root                 critical path                          without the query
//! 1        POST /checkout  90ms  validate 10, query orders 60, render 20        30ms
//! 2        POST /checkout 100ms  validate 10, query orders 65, render 25        35ms
//! 3        POST /checkout 435ms  validate 10, query orders 400, render 25       35ms
//!
//! query orders   on the path of 3 of 3 traces, 84% of their time; without it, half of them take 35ms instead of 100ms
//! ```
//!
//! Each trace has its own critical path and its own replay. What a pole saves of a duration that most requests keep, such as the 95th
//! percentile, follows from all traces without it, which may then stand in another order.

use std::collections::HashMap;

use longpole_model::{Nanos, TraceId};

use crate::report::Report;
use crate::report::diff::normalised;
use crate::words;

/// An operation by its service and its name, without what differs from one request to the next ([`normalised`]).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationKey {
    /// Its service.
    pub service: String,
    /// Its name.
    pub name: String,
}

/// What is a pole of several traces.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PoleKey {
    operation: OperationKey,
    /// The part of its own time, in words; empty for all of it.
    part: String,
}

/// A pole in one trace.
#[derive(Debug, Clone, Copy, Default)]
struct PoleOfTrace {
    /// The place of the trace.
    trace: u32,
    on_path: Nanos,
    saves: [Nanos; 2],
}

/// The traces of one root operation.
#[derive(Debug, Default)]
struct OfRoot {
    traces: Vec<(TraceId, Nanos)>,
    poles: HashMap<PoleKey, Vec<PoleOfTrace>>,
}

/// Critical paths of many traces, added trace by trace.
#[derive(Debug, Default)]
pub struct ManyTraces {
    roots: HashMap<OperationKey, OfRoot>,
    bytes: usize,
}

/// How long half, 95 % and 99 % of the traces took at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Quantiles {
    /// Half of them took no longer.
    pub median: Nanos,
    /// 95 % of them took no longer.
    pub p95: Nanos,
    /// 99 % of them took no longer.
    pub p99: Nanos,
}

/// A root operation and what its traces have in common.
#[derive(Debug, Clone, PartialEq)]
pub struct RootOperation {
    /// The operation that the traces begin with.
    pub operation: OperationKey,
    /// How many traces.
    pub traces: usize,
    /// All their time.
    pub total: Nanos,
    /// How long they took.
    pub takes: Quantiles,
    /// The longest of them, and how long it took.
    pub longest: (TraceId, Nanos),
    /// Their poles, those that save most first.
    pub poles: Vec<SharedPole>,
}

/// A pole of the traces of a root operation.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedPole {
    /// The operation.
    pub operation: OperationKey,
    /// The part of its own time that it is, in words, such as a function; empty for all of it.
    pub part: String,
    /// Traces with this pole on their critical path.
    pub traces: usize,
    /// Its time on the critical paths of all of them.
    pub on_path: Nanos,
    /// Its part of the time of the slowest 5 %, and of the others; `None` for fewer than [`SLOWEST_OF_MIN`] traces.
    pub shares: Option<[f64; 2]>,
    /// What all traces save if its own time were nothing: at least, and at most.
    pub saves: [Nanos; 2],
    /// How long the traces would take then: if it saves least, and if it saves most.
    pub without: [Quantiles; 2],
    /// The trace with most time in it, and that time.
    pub most_in: (TraceId, Nanos),
}

/// One trace in this many is among the slowest.
const SLOWEST_PART: usize = 20;

/// Least traces that have a slowest part.
pub const SLOWEST_OF_MIN: usize = 100;

/// What a name takes beside its bytes, and a pole in a trace, about.
const KEY_BYTES: usize = 128;
const ENTRY_BYTES: usize = 2 * size_of::<PoleOfTrace>();

impl ManyTraces {
    /// Adds a trace, which begins with the operation `name` of `service`.
    pub fn add(&mut self, trace: TraceId, (service, name): (&str, &str), report: &Report) {
        let root = OperationKey { service: service.to_owned(), name: normalised(name) };
        let root_bytes = KEY_BYTES + root.service.len() + root.name.len();
        let is_new = !self.roots.contains_key(&root);
        let of_root = self.roots.entry(root).or_default();
        self.bytes += size_of::<(TraceId, Nanos)>() * 2 + if is_new { root_bytes } else { 0 };
        let place = u32::try_from(of_root.traces.len()).unwrap_or(u32::MAX);
        of_root.traces.push((trace, report.wall()));
        for pole in report.poles().iter().filter(|pole| pole.on_path > Nanos::ZERO) {
            let part = report.part_of(pole).map(words::part).unwrap_or_default();
            let key = PoleKey { operation: OperationKey { service: pole.service.clone(), name: normalised(&pole.name) }, part };
            let key_bytes = KEY_BYTES + key.operation.service.len() + key.operation.name.len() + key.part.len();
            let of_pole = of_root.poles.entry(key).or_default();
            if of_pole.is_empty() {
                self.bytes += key_bytes;
            }
            // One operation is several poles of a trace where it belongs to several pieces of work.
            if of_pole.last().is_none_or(|last| last.trace != place) {
                of_pole.push(PoleOfTrace { trace: place, ..PoleOfTrace::default() });
                self.bytes += ENTRY_BYTES;
            }
            if let Some(of_trace) = of_pole.last_mut() {
                let own = pole.savings.own;
                of_trace.on_path += pole.on_path;
                of_trace.saves = [of_trace.saves[0] + own.low, of_trace.saves[1] + own.high].map(|saves| saves.min(report.wall()));
            }
        }
    }

    /// Memory that it takes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The root operations, the one with most time first.
    pub fn operations(self) -> Vec<RootOperation> {
        let mut operations: Vec<RootOperation> = self.roots.into_iter().map(|(key, of_root)| of_root.operation(key)).collect();
        operations.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.operation.cmp(&b.operation)));
        operations
    }
}

impl OfRoot {
    fn operation(self, operation: OperationKey) -> RootOperation {
        let walls: Vec<Nanos> = self.traces.iter().map(|(_, wall)| *wall).collect();
        let longest = self.traces.iter().copied().max_by_key(|(id, wall)| (*wall, std::cmp::Reverse(*id)));
        let slowest = slowest(&walls);
        let mut poles: Vec<SharedPole> = Vec::with_capacity(self.poles.len());
        for (key, of_traces) in &self.poles {
            poles.push(shared(key, of_traces, &self.traces, &walls, slowest.as_deref()));
        }
        let rank = |pole: &SharedPole| (pole.saves[0] + pole.saves[1], pole.on_path);
        let name = |pole: &SharedPole| (pole.operation.clone(), pole.part.clone());
        poles.sort_by(|a, b| rank(b).cmp(&rank(a)).then_with(|| name(a).cmp(&name(b))));
        RootOperation {
            operation,
            traces: walls.len(),
            total: walls.iter().copied().sum(),
            takes: quantiles(walls),
            longest: longest.unwrap_or((TraceId::MAX, Nanos::ZERO)),
            poles,
        }
    }
}

fn shared(key: &PoleKey, of_traces: &[PoleOfTrace], traces: &[(TraceId, Nanos)], walls: &[Nanos], slowest: Option<&[bool]>) -> SharedPole {
    let mut without = [walls.to_vec(), walls.to_vec()];
    for of_trace in of_traces {
        for (walls, saves) in without.iter_mut().zip(of_trace.saves) {
            let wall = &mut walls[of_trace.trace as usize];
            *wall -= saves;
        }
    }
    let shares = slowest.map(|slowest| {
        [true, false].map(|wanted| {
            let on_path: Nanos = of_traces.iter().filter(|of| slowest[of.trace as usize] == wanted).map(|of| of.on_path).sum();
            let whole: Nanos = walls.iter().zip(slowest).filter(|(_, is_slow)| **is_slow == wanted).map(|(wall, _)| *wall).sum();
            on_path.0 as f64 / whole.0.max(1) as f64
        })
    });
    let most = of_traces.iter().max_by_key(|of| (of.on_path, std::cmp::Reverse(of.trace)));
    SharedPole {
        operation: key.operation.clone(),
        part: key.part.clone(),
        traces: of_traces.len(),
        on_path: of_traces.iter().map(|of| of.on_path).sum(),
        shares,
        saves: [0, 1].map(|end| of_traces.iter().map(|of| of.saves[end]).sum()),
        without: without.map(quantiles),
        most_in: most.map_or((TraceId::MAX, Nanos::ZERO), |of| (traces[of.trace as usize].0, of.on_path)),
    }
}

/// Which traces are among the slowest, if there are enough of them.
fn slowest(walls: &[Nanos]) -> Option<Vec<bool>> {
    if walls.len() < SLOWEST_OF_MIN {
        return None;
    }
    let mut order: Vec<usize> = (0..walls.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(walls[*place]));
    let mut is_slow = vec![false; walls.len()];
    order.iter().take(walls.len() / SLOWEST_PART).for_each(|place| is_slow[*place] = true);
    Some(is_slow)
}

fn quantiles(mut durations: Vec<Nanos>) -> Quantiles {
    durations.sort_unstable();
    // The smallest duration that at least this share of all does not exceed.
    let quantile = |percent: usize| {
        let rank = (durations.len() * percent).div_ceil(100).max(1);
        durations.get(rank - 1).copied().unwrap_or(Nanos::ZERO)
    };
    Quantiles { median: quantile(50), p95: quantile(95), p99: quantile(99) }
}

#[cfg(test)]
mod tests {
    use longpole_model::text;

    use super::*;

    const CART: (&str, &str) = ("shop", "POST /cart/4711");

    /// A request that validates for 10 ms, queries and renders for 20 ms.
    fn checkout(query_millis: i64) -> Report {
        let (end, render) = (query_millis + 30, query_millis + 10);
        let spans = [("POST", 0, end), ("  validate", 0, 10), ("  query", 10, render), ("  render", render, end)];
        let lines: Vec<String> = spans.iter().map(|(name, from, to)| format!("{name}  {from}..{to}ms  shop\n")).collect();
        Report::new(text::parse(&lines.concat()).unwrap())
    }

    fn id(number: usize) -> TraceId {
        format!("{:032x}", number + 1).parse().unwrap()
    }

    fn millis(quantiles: Quantiles) -> [i64; 3] {
        [quantiles.median, quantiles.p95, quantiles.p99].map(|nanos| nanos.0 / 1_000_000)
    }

    #[test]
    fn a_pole_of_many_traces_says_what_each_quantile_gains() {
        let mut many = ManyTraces::default();
        // Two in a hundred take long.
        for number in 0..100 {
            many.add(id(number), CART, &checkout(if number % 50 == 7 { 400 } else { 60 }));
        }
        assert!(many.bytes() > 100 * ENTRY_BYTES);
        let operations = many.operations();
        assert_eq!(operations.len(), 1);
        let checkout = &operations[0];
        assert_eq!((checkout.operation.name.as_str(), checkout.traces), ("POST /cart/#", 100));
        assert_eq!((millis(checkout.takes), checkout.longest.0), ([90, 90, 430], id(7)));
        let query = &checkout.poles[0];
        assert_eq!((query.operation.name.as_str(), query.traces, query.most_in.0), ("query", 100, id(7)));
        assert_eq!(query.without.map(millis), [[30, 30, 30]; 2]);
        let [slow, rest] = query.shares.unwrap();
        assert!(slow > 0.79 && (0.66..0.67).contains(&rest), "{slow} {rest}");
        let on_path: Nanos = checkout.poles.iter().map(|pole| pole.on_path).sum();
        assert_eq!(on_path, checkout.total);
    }

    #[test]
    fn operations_stand_by_their_time() {
        let mut many = ManyTraces::default();
        many.add(id(1), ("shop", "GET /"), &Report::new(text::parse("GET  0..5ms  shop\n").unwrap()));
        many.add(id(2), CART, &checkout(60));
        let names: Vec<String> = many.operations().into_iter().map(|it| it.operation.name).collect();
        assert_eq!(names, ["POST /cart/#", "GET /"]);
        assert!(ManyTraces::default().operations().is_empty());
    }

    #[test]
    fn a_slowest_part_needs_traces() {
        let walls = |count: i64| (0..count).map(Nanos).collect::<Vec<_>>();
        assert_eq!(slowest(&walls(99)), None);
        assert_eq!(slowest(&walls(100)).map(|slow| slow.iter().filter(|it| **it).count()), Some(5));
        assert_eq!(quantiles(Vec::new()), Quantiles::default());
    }
}
