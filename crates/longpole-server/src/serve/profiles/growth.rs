//! What grows: states of services, such as memory in use, over a range of time.
//!
//! ```text
//! values of all series ─ by service, and by labels that name neither a process nor a version ─► 48 values a process ─► one line ─► trend
//!                        of those that grow: first quarter of the growth beside its last, function by function
//! ```
//!
//! Changes of processes are chained, so neither more processes nor restarts hide or make a growth. At most [`MOMENTS_MAX`] moments of a series count for a part,
//! chosen by their times alone: a month of profiles every 15 seconds fits the memory of a query.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use axum::extract::RawQuery;
use longpole_analysis::profile::{Chained, Growth, GrowthPoint, ProcessValues, ProfileTree, Trend};
use longpole_model::profile::{ProfileSeries, ProfileType, SERVICE_LABEL};
use longpole_model::{Text, Timestamp};
use longpole_recording::view::{GrowingFunctionView, GrowingStateView, GrowthNumbers, ServiceGrowthView};
use longpole_store::StoreError;
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::selector::{self, MatchOp, Matcher};

use super::matching::Selector;
use super::merged;
use super::versions::{self, Versions};
use super::wanted::Wanted;
use crate::api::{Answer, ApiError, json};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;
use crate::serve::query_error::QueryError;
use crate::serve::query_turns::QueriedStore;
use crate::wall_clock::now;

/// How far an answer goes back without `start`: as long as profiles are kept by default.
const LOOKBACK_NANOS: i64 = 7 * 86_400_000_000_000;

/// Parts of the time; each becomes one value.
const PARTS: usize = 48;

/// Times that are tried, each shorter than the one before, and the shortest.
const ROUNDS: usize = 4;
const NANOS_MIN: i128 = 300_000_000_000;

/// Moments of a state for which a shorter time is tried.
const MOMENTS_MIN: usize = 12;

/// Moments of a series that count for a part.
const MOMENTS_MAX: usize = 16;

/// States that are read, and growing ones that an answer has.
const STATES_MAX: usize = 4_096;
const GROWING_MAX: usize = 20;

/// Functions of a state, and those above one.
const FUNCTIONS_MAX: usize = 10;
const CALLERS_MAX: usize = 8;

/// Memory of a state, of a series, of a part with a moment, and of each further moment, with what is made of them: about.
const STATE_BYTES: u64 = 2_048;
const SERIES_BYTES: u64 = 512;
const PART_BYTES: u64 = 384;
const MOMENT_BYTES: u64 = 40;

/// Labels that name a process: states of several are one average.
const OF_A_PROCESS: [&str; 12] = [
    "container_id",
    "host",
    "host_name",
    "hostname",
    "instance",
    "k8s_pod_name",
    "pid",
    "pod",
    "pod_name",
    "process_pid",
    "service_instance_id",
    "thread_id",
];

/// A state: a type, the service, and the labels beside it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct StateKey {
    of_type: ProfileType,
    service: Text,
    labels: Vec<(Text, Text)>,
}

impl StateKey {
    fn of(series: &ProfileSeries) -> StateKey {
        let is_own = |name: &str| name != SERVICE_LABEL && !OF_A_PROCESS.contains(&name) && !versions::is_one(name);
        StateKey {
            of_type: series.profile_type.clone(),
            service: series.label(SERVICE_LABEL).cloned().unwrap_or_default(),
            labels: series.labels.iter().filter(|(name, _)| is_own(name)).cloned().collect(),
        }
    }

    /// The labels by which its series are found.
    fn conditions(&self) -> impl Iterator<Item = (&str, &str)> {
        let others = self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        [(SERVICE_LABEL, self.service.as_str())].into_iter().chain(others)
    }

    fn query(&self) -> String {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let conditions: Vec<String> = self.conditions().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        format!("{}{{{}}}", self.of_type, conditions.join(","))
    }

    fn wanted(&self, range: [Timestamp; 2]) -> Result<Wanted, QueryError> {
        let equal = |(name, value): (&str, &str)| Matcher { name: name.to_owned(), op: MatchOp::Equal, value: value.to_owned() };
        Ok(Wanted::new(self.of_type.clone(), Selector::of_matchers(self.conditions().map(equal).collect())?, range))
    }
}

/// The times of an answer, and its parts.
#[derive(Debug, Clone, Copy)]
struct Parted {
    from: Timestamp,
    until: Timestamp,
}

impl Parted {
    fn nanos(self) -> i128 {
        i128::from(self.until.unix_nanos()) - i128::from(self.from.unix_nanos())
    }

    fn part_of(self, at: Timestamp) -> usize {
        let since = i128::from(at.unix_nanos()) - i128::from(self.from.unix_nanos());
        usize::try_from(since * PARTS as i128 / self.nanos().max(1)).unwrap_or(0).min(PARTS - 1)
    }

    /// Length of a part.
    fn part_nanos(self) -> i64 {
        i64::try_from(self.nanos() / PARTS as i128).unwrap_or(i64::MAX)
    }

    /// Values by part as values by time.
    fn points(self, values: &ProcessValues) -> Vec<GrowthPoint> {
        let seconds = |part: usize| (self.nanos() * part as i128 / PARTS as i128) as f64 / 1e9;
        values.iter().map(|(part, value)| GrowthPoint { seconds: seconds(*part), value: *value }).collect()
    }

    /// When a part begins.
    fn begin(self, part: usize) -> Timestamp {
        let since = self.nanos() * part as i128 / PARTS as i128;
        Timestamp(self.from.unix_nanos().saturating_add(i64::try_from(since).unwrap_or(i64::MAX)))
    }
}

/// What the moments of a series had in a part, by times in an order of their own; the first [`MOMENTS_MAX`] of them.
type Moments = BTreeMap<u64, i64>;

/// The place of a time in that order, in which neighbours stand apart (SplitMix64).
fn order(at: Timestamp) -> u64 {
    let mixed = at.unix_nanos().cast_unsigned().wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A series in the time of the answer.
#[derive(Debug, Default)]
struct OneSeries {
    /// The place of its state.
    state: usize,
    first: Option<Timestamp>,
    parts: BTreeMap<usize, Moments>,
}

/// All states.
#[derive(Debug, Default)]
struct States {
    keys: Vec<StateKey>,
    series: Vec<(Arc<ProfileSeries>, OneSeries)>,
}

impl States {
    /// Reads the states of a time, except those that are known.
    fn read(store: &LiveStore, wanted: &Wanted, parted: Parted, known: &HashSet<StateKey>) -> Result<States, QueryError> {
        let mut states = States::default();
        let mut place_of: HashMap<StateKey, usize> = HashMap::new();
        let mut place_of_series: HashMap<Arc<ProfileSeries>, usize> = HashMap::new();
        let mut series: Vec<OneSeries> = Vec::new();
        let (mut of_states, mut of_moments) = (store.limits().growing(), store.limits().growing());
        let finds =
            |series: &ProfileSeries| series.profile_type.is_state() && wanted.finds(series) && !known.contains(&StateKey::of(series));
        let place = |it: &Arc<ProfileSeries>| -> Result<usize, StoreError> {
            if let Some(known) = place_of_series.get(it) {
                return Ok(*known);
            }
            let key = StateKey::of(it);
            let next = place_of.len();
            let state = match place_of.get(&key) {
                Some(known) => *known,
                // What is too much is one state, which is not shown.
                None if next >= STATES_MAX => STATES_MAX,
                None => {
                    of_states.take(STATE_BYTES + it.memory_bytes())?;
                    place_of.insert(key.clone(), next);
                    states.keys.push(key);
                    next
                }
            };
            of_states.take(SERIES_BYTES + it.memory_bytes())?;
            let next = place_of_series.len();
            place_of_series.insert(Arc::clone(it), next);
            states.series.push((Arc::clone(it), OneSeries { state, ..OneSeries::default() }));
            Ok(next)
        };
        store.each_profile_value(&wanted.filter(&finds), place, |place, value| {
            series.resize_with(series.len().max(place + 1), OneSeries::default);
            let it = &mut series[place];
            it.first = Some(it.first.map_or(value.time, |first| first.min(value.time)));
            let moments = match it.parts.entry(parted.part_of(value.time)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(place) => {
                    of_moments.take(PART_BYTES)?;
                    place.insert(Moments::new())
                }
            };
            let order = order(value.time);
            if let Some(sum) = moments.get_mut(&order) {
                *sum = sum.saturating_add(value.value);
                return Ok(());
            }
            if moments.len() == MOMENTS_MAX {
                if moments.last_key_value().is_some_and(|(last, _)| *last < order) {
                    return Ok(());
                }
                moments.pop_last();
            } else {
                of_moments.take(MOMENT_BYTES)?;
            }
            moments.insert(order, value.value);
            Ok(())
        })?;
        for ((_, known), read) in states.series.iter_mut().zip(series) {
            (known.first, known.parts) = (read.first, read.parts);
        }
        Ok(states)
    }

    /// The series of a state.
    fn series_of(&self, state: usize) -> impl Iterator<Item = &(Arc<ProfileSeries>, OneSeries)> {
        self.series.iter().filter(move |(_, it)| it.state == state)
    }

    /// Processes of all states: averages by part, only of parts with a value.
    fn processes_by_state(&self) -> Vec<Vec<ProcessValues>> {
        let mut processes: Vec<Vec<ProcessValues>> = vec![Vec::new(); self.keys.len()];
        let average = |moments: &Moments| moments.values().map(|value| *value as f64).sum::<f64>() / moments.len().max(1) as f64;
        for (_, it) in &self.series {
            if let Some(of_state) = processes.get_mut(it.state) {
                of_state.push(it.parts.iter().map(|(part, moments)| (*part, average(moments))).collect());
            }
        }
        processes
    }

    /// Series with a value in the last part that has any.
    fn processes_now(&self, state: usize) -> usize {
        let last = |(_, it): &(Arc<ProfileSeries>, OneSeries)| it.parts.last_key_value().map(|(part, _)| *part);
        let latest = self.series_of(state).filter_map(last).max();
        self.series_of(state).filter(|it| last(it) == latest).count()
    }

    /// The last version whose first profiles came between two times.
    fn version(&self, state: usize, range: [Timestamp; 2]) -> Option<(String, Timestamp)> {
        let mut versions = Versions::default();
        for (series, it) in self.series_of(state) {
            it.first.into_iter().for_each(|first| versions.note(series, first));
        }
        versions.began(range).pop()
    }
}

pub(super) async fn growth(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let view = off_the_reactor::<_, ApiError>(move || {
        let parameters = Parameters::of(query.as_deref()).map_err(QueryError::from)?;
        let until = parameters.micros("end").map_err(QueryError::from)?.unwrap_or_else(now);
        let from = parameters.micros("start").map_err(QueryError::from)?;
        let from = from.unwrap_or(Timestamp(until.unix_nanos().saturating_sub(LOOKBACK_NANOS)));
        let matchers = selector::parse(parameters.text("query").unwrap_or_default());
        let matchers = matchers.map_err(|error| QueryError::Bad(error.to_string()))?;
        Ok(of_range(&store, &Selector::of_matchers(matchers)?, [from, until])?)
    });
    json(&view.await?)
}

/// A state that grows.
struct GrowingState {
    key: StateKey,
    growth: Growth,
    chained: Chained,
    parted: Parted,
    /// With the time of its first profile.
    version: Option<(String, Timestamp)>,
    /// Processes in the last part.
    processes: usize,
}

impl GrowingState {
    /// The part in which the growth began.
    fn begin(&self) -> usize {
        self.chained.values.keys().nth(self.growth.since).copied().unwrap_or(0)
    }

    /// When it began; `None` if before the first profile.
    fn since(&self) -> Option<Timestamp> {
        (self.growth.since > 0).then(|| self.parted.begin(self.begin()))
    }

    /// How much more the line has at its end than the process that holds most of the growth: the line leaves out what a new version brought.
    fn ahead(&self) -> f64 {
        self.chained.end() - self.chained.held[1]
    }

    /// Whether a restart, or another fall, took most of it back from each process.
    fn is_taken_back(&self) -> bool {
        let [before, after] = self.growth.values;
        self.chained.held[0] < HELD_MIN * (after - before)
    }

    /// By how much of itself it grew.
    fn part(&self) -> f64 {
        let [before, after] = self.growth.values;
        (after - before) / before.abs().max(1.0)
    }

    fn view(&self, store: &LiveStore) -> Result<GrowingStateView, QueryError> {
        let Growth { slope, slope_range, values, .. } = self.growth;
        let begin = self.parted.begin(self.begin());
        let last = self.chained.values.keys().next_back().copied().unwrap_or(0);
        let until = self.parted.begin(last);
        let is_taken_back = self.is_taken_back();
        let values = if is_taken_back { values } else { values.map(|value| value - self.ahead()) };
        let since = self.version.as_ref().map(|(_, first)| *first).or_else(|| self.since());
        let numbers = GrowthNumbers {
            slope,
            slope_range,
            values,
            now: self.chained.now,
            is_taken_back,
            since,
            since_within_nanos: if self.version.is_some() || since.is_none() { 0 } else { self.parted.part_nanos() },
            first: self.parted.begin(self.chained.values.keys().next().copied().unwrap_or(0)),
            over_nanos: until.unix_nanos().saturating_sub(begin.unix_nanos()),
        };
        let version = self.version.as_ref().map(|(version, _)| version.clone());
        let mut view = GrowingStateView::new(&self.key.service, self.key.query(), &self.key.of_type, numbers, version);
        view.processes = self.processes;
        view.functions = functions(store, self)?;
        Ok(view)
    }
}

/// A growth is still there if a process holds this part of it.
const HELD_MIN: f64 = 0.5;

/// What became of all states.
#[derive(Default)]
struct Judged {
    growing: Vec<GrowingState>,
    steady: usize,
    too_short: usize,
    /// Those with enough values.
    keys: HashSet<StateKey>,
}

impl Judged {
    /// Judges states of a time. Returns the first values of those that it may be too long for.
    fn judge(&mut self, states: &States, parted: Parted) -> Vec<Timestamp> {
        let mut dense = Vec::new();
        self.too_short = 0;
        for (state, processes) in states.processes_by_state().iter().enumerate() {
            let Some(chained) = Chained::of(processes) else { continue };
            let trend = if parted.nanos() < NANOS_MIN { Trend::TooShort } else { Trend::of(&parted.points(&chained.values)) };
            let key = states.keys[state].clone();
            match trend {
                Trend::TooShort => {
                    self.too_short += 1;
                    // A few single values say nothing in a shorter time either.
                    let moments: usize = states.series_of(state).flat_map(|(_, it)| it.parts.values().map(BTreeMap::len)).sum();
                    let is_dense = moments >= MOMENTS_MIN;
                    dense.extend(states.series_of(state).filter_map(|(_, it)| it.first).min().filter(|_| is_dense));
                    continue;
                }
                Trend::Steady => self.steady += 1,
                Trend::Growing(growth) => {
                    let mut found =
                        GrowingState { key: key.clone(), growth, chained, parted, version: None, processes: states.processes_now(state) };
                    let begin = found.begin();
                    let near = [begin.saturating_sub(2), begin + 2].map(|part| parted.begin(part));
                    found.version = found.since().and_then(|_| states.version(state, near));
                    self.growing.push(found);
                }
            }
            self.keys.insert(key);
        }
        dense
    }

    /// Those that grow, the largest part of itself first; behind them those that restarts take back.
    fn into_growing(mut self) -> Vec<GrowingState> {
        // Objects in use grow with their bytes, which say more.
        let bytes: Vec<StateKey> = self.growing.iter().map(|it| it.key.clone()).filter(is_bytes).collect();
        self.growing.retain(|it| is_bytes(&it.key) || !bytes.iter().any(|of_bytes| is_beside(of_bytes, &it.key)));
        self.growing.sort_by(|a, b| {
            let by_part = b.part().total_cmp(&a.part());
            a.is_taken_back().cmp(&b.is_taken_back()).then(by_part).then_with(|| a.key.cmp(&b.key))
        });
        self.growing
    }
}

fn of_range(store: &LiveStore, selector: &Selector, [from, until]: [Timestamp; 2]) -> Result<ServiceGrowthView, QueryError> {
    let [first, last] = store.profile_times().unwrap_or([from, until]);
    let from = from.max(first);
    let until = until.min(Timestamp(last.unix_nanos().saturating_add(1))).max(from);
    let mut judged = Judged::default();
    let mut parted = Parted { from, until };
    // A service that came later has its values in the last parts alone, so that shorter times are wanted for it.
    for _ in 0..ROUNDS {
        let wanted = Wanted::between([parted.from, until]).selected(selector.clone());
        let states = States::read(store, &wanted, parted, &judged.keys)?;
        let dense = judged.judge(&states, parted);
        let Some(from) = dense.into_iter().filter(|first| *first > parted.begin(PARTS / 8)).min() else { break };
        parted = Parted { from, until };
    }
    let others = [judged.steady, judged.too_short];
    let growing = judged.into_growing();
    let views = growing.iter().take(GROWING_MAX).map(|it| it.view(store)).collect::<Result<Vec<_>, QueryError>>()?;
    let truncated = growing.len().saturating_sub(GROWING_MAX);
    Ok(ServiceGrowthView::new([from, until], views, truncated, others))
}

/// Whether a state has a size.
fn is_bytes(key: &StateKey) -> bool {
    key.of_type.sample_unit == "bytes"
}

/// Whether two states are of the same profiles.
fn is_beside(a: &StateKey, b: &StateKey) -> bool {
    (&a.of_type.name, &a.service, &a.labels) == (&b.of_type.name, &b.service, &b.labels)
}

/// The functions that hold more when a growth is largest than in its first quarter.
fn functions(store: &LiveStore, state: &GrowingState) -> Result<Vec<GrowingFunctionView>, QueryError> {
    let (begin, parted) = (state.begin(), state.parted);
    let quarter = ((PARTS - begin) / 4).max(1);
    let side = |from: usize| -> Result<CallsOfQuarter, QueryError> {
        let tree = merged::tree(store, &state.key.wanted([parted.begin(from), parted.begin(from + quarter)])?, &[])?;
        Ok(CallsOfQuarter { tree })
    };
    let before = side(begin)?;
    // A restart may stand behind it: the largest of the later quarters.
    let mut after = side(PARTS - quarter)?;
    if state.is_taken_back() {
        for from in (begin + quarter..PARTS - quarter).step_by(quarter) {
            let other = side(from)?;
            after = if other.tree.total() > after.tree.total() { other } else { after };
        }
    }
    store.limits().take(before.tree.answer_bytes(FUNCTIONS_MAX).saturating_add(after.tree.answer_bytes(FUNCTIONS_MAX)))?;
    Ok(grown(&before, &after))
}

/// Calls of a quarter of a growth.
struct CallsOfQuarter {
    tree: ProfileTree,
}

fn grown(before: &CallsOfQuarter, after: &CallsOfQuarter) -> Vec<GrowingFunctionView> {
    let nodes = before.tree.beside(&after.tree);
    // By function: the growth of all its calls, and the call with most of it.
    let mut functions: BTreeMap<&str, (i64, i64, usize)> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.depth > 0) {
        let growth = node.sides[1].1.saturating_sub(node.sides[0].1);
        let function = functions.entry(node.name.as_str()).or_insert((0, i64::MIN, place));
        function.0 = function.0.saturating_add(growth);
        if growth > function.1 {
            (function.1, function.2) = (growth, place);
        }
    }
    let mut functions: Vec<(&str, (i64, i64, usize))> = functions.into_iter().filter(|(_, (growth, ..))| *growth > 0).collect();
    functions.sort_by_key(|(_, (growth, ..))| std::cmp::Reverse(*growth));
    let whole = functions.iter().map(|(_, (growth, ..))| *growth as f64).sum::<f64>();
    functions.truncate(FUNCTIONS_MAX);
    let of = |(name, (growth, _, place)): (&str, (i64, i64, usize))| {
        let mut callers: Vec<&str> = Vec::new();
        let mut depth = nodes[place].depth;
        // Each stands before what it called.
        for above in nodes[..place].iter().rev() {
            if above.depth + 1 == depth && above.depth > 0 {
                depth = above.depth;
                callers.push(above.name.as_str());
            }
        }
        callers.truncate(CALLERS_MAX);
        callers.reverse();
        GrowingFunctionView::new(name, growth as f64, growth as f64 / whole.max(1.0), &callers)
    };
    functions.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(stacks: &[(&str, i64)]) -> CallsOfQuarter {
        let mut tree = ProfileTree::default();
        for (stack, value) in stacks {
            let functions: Vec<Text> = stack.split(';').map(Text::from).collect();
            tree.add(functions.iter().zip(std::iter::repeat(&Text::new())), *value);
        }
        CallsOfQuarter { tree }
    }

    #[test]
    fn the_function_that_holds_the_growth_is_first() {
        let before = calls(&[("main;load;index", 100), ("main;handle;remember", 100)]);
        let after = calls(&[("main;load;index", 90), ("main;handle;remember", 250), ("main;trim", 10)]);
        let grown = grown(&before, &after);
        let names: Vec<(&str, i64, String)> =
            grown.iter().map(|it| (it.function.as_str(), it.growth.round() as i64, it.callers.join(" › "))).collect();
        assert_eq!(names, [("remember", 150, "main › handle".to_owned()), ("trim", 10, "main".to_owned())]);
        assert!((grown[0].share - 150.0 / 160.0).abs() < 1e-9, "{grown:?}");
    }

    #[test]
    fn parts_cover_the_time() {
        let parted = Parted { from: Timestamp(1_000), until: Timestamp(1_000 + 48_000) };
        assert_eq!([1_000, 1_999, 2_000, 48_999, 60_000].map(|at| parted.part_of(Timestamp(at))), [0, 0, 1, 47, 47]);
        assert_eq!([0, 1, 48].map(|part| parted.begin(part).unix_nanos()), [1_000, 2_000, 49_000]);
        let extreme = Parted { from: Timestamp(i64::MIN), until: Timestamp(i64::MAX) };
        assert_eq!((extreme.part_of(Timestamp(i64::MIN)), extreme.part_of(Timestamp(i64::MAX))), (0, 47));
        let empty = Parted { from: Timestamp(5), until: Timestamp(5) };
        assert_eq!(empty.part_of(Timestamp(5)), 0);
    }
}
