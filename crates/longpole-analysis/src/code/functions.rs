//! Samples → functions: what each weighs, on which lines, and which is the program's own.
//!
//! A function is a name and a file; its handle `f1`, `f2`, … is its rank by total weight over the whole recording. *Self* is
//! the weight of samples in which it was the innermost frame, *total* of those in which it occurs: once, however often it
//! stands in one stack.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::OnceLock;

use longpole_model::fast_hash::FastMap;
use longpole_model::long_text::cut;
use longpole_model::stack::LocationKind;
use longpole_model::{Frame, FunctionId, Id, IdVec, Location, LocationId, Recording, Runtime, StackId, Text, UnsignedNanos};

use crate::code::origin::{self, CodeOrigin};
use crate::code::paths::{PATHS_MAX, Paths};
use crate::code::stack_frames::{StackFrames, per_stack};

/// A function of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name; for an address without a name `libc.so.6+0x12ab`, for a cut stack `[reason]`.
    pub function: String,
    /// Source file, empty where unknown.
    pub file: String,
    /// The line in it with the most weight: of samples, and where it has none, of waits. 0 where unknown.
    pub line: u32,
    /// Why there is no name, where there is none.
    pub reason: Option<String>,
    /// What runs it, where no binary holds it.
    pub runtime: Option<Runtime>,
    /// Whose code it is.
    pub whose: CodeOrigin,
    /// Over all samples of the recording.
    pub weight: Weight,
}

/// Which frames of a stack are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// Every one.
    All,
    /// Without those that start the program or a thread and call it, and without the loops of interpreters around the functions that
    /// they run: they hold nearly all time, and say nothing.
    Telling,
}

/// What samples add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weight {
    /// Time of samples in which it occurs.
    pub total: UnsignedNanos,
    /// Time of samples in which it was innermost.
    pub self_time: UnsignedNanos,
    /// Number of samples in which it occurs.
    pub samples: u64,
}

/// A function within a selection of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionWeight {
    /// The function.
    pub function: FunctionId,
    /// Its weight there.
    pub weight: Weight,
}

/// What lies on one line of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineWeight {
    /// The line; 0 where unknown.
    pub line: u32,
    /// Time of samples that stood there, and in what it called from there.
    pub total: UnsignedNanos,
    /// Time of samples that stood there themselves.
    pub self_time: UnsignedNanos,
    /// Time of waits there, and in what it called from there.
    pub waited: UnsignedNanos,
}

/// All functions of a recording, and which of them each stack consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Functions {
    /// By total weight, largest first; then by name.
    pub list: IdVec<FunctionId, Function>,
    frames: StackFrames,
    paths: OnceLock<Paths>,
    shapes: OnceLock<IdVec<StackId, Shape>>,
}

/// What of a stack tells something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Shape {
    /// Frames, innermost first, before those that only start the program or thread and call it.
    telling: u32,
    /// The innermost frame of the program's own code.
    own: Option<u32>,
}

impl Shape {
    fn new(functions: &IdVec<FunctionId, Function>, stack: &[(FunctionId, u32)]) -> Shape {
        let whose = |place: usize| functions[stack[place].0].whose;
        let is_own = |place: &usize| whose(*place) == CodeOrigin::Program;
        let outermost = |wanted: CodeOrigin| (0..stack.len()).rev().find(|&place| whose(place) == wanted);
        // An interpreted program's own function says more than the native code below it. Where some functions of a
        // binary have a source file, those that have none are libraries, which are often built without.
        let own = || (0..stack.len()).filter(is_own);
        let interpreted = own().find(|&place| functions[stack[place].0].runtime.is_some());
        let known = || own().find(|&place| !functions[stack[place].0].file.is_empty());
        let innermost = interpreted.or_else(known).or_else(|| own().next());
        let last = outermost(CodeOrigin::Program).or_else(|| outermost(CodeOrigin::Library));
        // A stack is no longer than 2^32 frames: of a longer one, what is outermost tells nothing.
        let depth = |frames: usize| u32::try_from(frames).unwrap_or(u32::MAX);
        Shape { telling: depth(last.map_or(stack.len(), |last| last + 1)), own: innermost.map(depth) }
    }
}

/// Why a frame has no name if nobody looked.
const NO_SYMBOLS: &str = "symbols were not looked up";

/// What people see of a location whose symbols were not looked up.
fn unnamed(recording: &Recording, location: &Location) -> Frame {
    let function = match &location.kind {
        LocationKind::Code { mapping, address } => {
            let path = recording.mapping(*mapping).map_or("?", |m| m.path.as_str());
            format!("{}+{address}", path.rsplit('/').next().unwrap_or(path))
        }
        LocationKind::Unmapped { address } | LocationKind::Named { address: Some(address), .. } => address.to_string(),
        LocationKind::Named { runtime, address: None } => format!("[{}]", runtime.as_str()),
        LocationKind::Cut { reason } => format!("[{reason}]"),
    };
    Frame { function: function.into(), file: Text::new(), line: 0, reason: Some(NO_SYMBOLS.to_owned()) }
}

/// Time in samples, then in waits.
type SamplesAndWaits = (UnsignedNanos, UnsignedNanos);

/// Bytes of a function's name or file that views show. Each list of functions copies them, and whoever sends a recording chooses them.
const SHOWN_BYTES_MAX: usize = 4 << 10;

fn shown(name: &str) -> String {
    cut(name, SHOWN_BYTES_MAX).into_owned()
}

impl Functions {
    /// The functions of this recording.
    pub fn new(recording: &Recording) -> Functions {
        let mut names: HashMap<(Text, Text), FunctionId> = HashMap::new();
        let mut list: IdVec<FunctionId, Function> = IdVec::default();
        let mut of_location = Vec::with_capacity(recording.locations.len());
        for location in &recording.locations {
            let runtime = match location.kind {
                LocationKind::Named { runtime, .. } => Some(runtime),
                _ => None,
            };
            let unnamed = location.frames.is_empty().then(|| unnamed(recording, location));
            let frames = unnamed.as_slice().iter().chain(&location.frames);
            let mut ids = Vec::new();
            for frame in frames {
                let next = list.next_id();
                let id = *names.entry((frame.function.clone(), frame.file.clone())).or_insert(next);
                if id == next {
                    list.push(Function {
                        function: shown(&frame.function),
                        file: shown(&frame.file),
                        line: 0,
                        reason: frame.reason.clone(),
                        runtime,
                        whose: origin::whose(recording, location, &frame.function, &frame.file),
                        weight: Weight::default(),
                    });
                }
                ids.push((id, frame.line));
            }
            of_location.push(ids);
        }
        let mut functions =
            Functions { list, frames: StackFrames { of_location: of_location.into() }, paths: OnceLock::new(), shapes: OnceLock::new() };
        let stacks = per_stack(recording, recording.samples.iter().map(|s| (s.stack, s.weight_nanos)));
        let weights = functions.weigh_stacks(recording, &stacks, Frames::All);
        for (function, weight) in functions.list.iter_mut().zip(weights) {
            function.weight = weight;
        }
        let waits = recording.waits.iter().filter_map(|wait| Some((wait.stack?, wait.nanos())));
        functions.choose_lines(recording, &stacks, &per_stack(recording, waits));
        functions.rank();
        functions
    }

    /// The line of a function is the one with the most weight, the first of equals. Waits weigh less than any sample.
    fn choose_lines(&mut self, recording: &Recording, samples: &[(StackId, u64, u64)], waits: &[(StackId, u64, u64)]) {
        let none = SamplesAndWaits::default();
        let mut weights: HashMap<(FunctionId, u32), SamplesAndWaits> = HashMap::new();
        let mut at_location: IdVec<LocationId, SamplesAndWaits> = IdVec::filled(none, self.frames.of_location.len());
        let sampled = samples.iter().map(|&(stack, nanos, _)| (stack, (UnsignedNanos(nanos), none.1)));
        let waited = waits.iter().map(|&(stack, nanos, _)| (stack, (none.0, UnsignedNanos(nanos))));
        let add = |sum: &mut SamplesAndWaits, more: SamplesAndWaits| *sum = (sum.0 + more.0, sum.1 + more.1);
        for (stack, weight) in sampled.chain(waited) {
            for &location in recording.stack(stack).map_or(&[][..], |s| &s.locations) {
                if let Some(sum) = at_location.get_mut(location) {
                    add(sum, weight);
                }
            }
        }
        for (frames, weight) in self.frames.of_location.iter().zip(at_location) {
            for &(id, line) in frames.iter().filter(|(_, line)| *line > 0) {
                add(weights.entry((id, line)).or_default(), weight);
            }
        }
        let mut best: IdVec<FunctionId, Option<(SamplesAndWaits, Reverse<u32>)>> = IdVec::filled(None, self.list.len());
        for ((id, line), weight) in weights {
            let slot = &mut best[id];
            *slot = (*slot).max(Some((weight, Reverse(line))));
        }
        for (function, best) in self.list.iter_mut().zip(best) {
            function.line = best.map_or(0, |(_, Reverse(line))| line);
        }
    }

    fn rank(&mut self) {
        let mut order: Vec<FunctionId> = self.list.ids().collect();
        order.sort_by(|&a, &b| {
            let key = |i: FunctionId| {
                let f = &self.list[i];
                (Reverse(f.weight.total), &f.function, &f.file)
            };
            key(a).cmp(&key(b))
        });
        let mut rank = self.list.ids().collect::<IdVec<FunctionId, FunctionId>>();
        for (place, &function) in order.iter().enumerate() {
            rank[function] = FunctionId::at(place);
        }
        for frames in self.frames.of_location.iter_mut() {
            for (function, _) in frames {
                *function = rank[*function];
            }
        }
        let mut list: IdVec<FunctionId, Option<Function>> = std::mem::take(&mut self.list).into_iter().map(Some).collect();
        self.list = order.into_iter().filter_map(|function| list[function].take()).collect();
    }

    /// Functions of a stack, innermost first.
    pub fn of_stack<'a>(&'a self, recording: &'a Recording, stack: StackId) -> impl DoubleEndedIterator<Item = FunctionId> + 'a {
        self.lines_of_stack(recording, stack).map(|(function, _)| function)
    }

    /// Functions of a stack, innermost first, each with the line that it was at, 0 where unknown.
    pub fn lines_of_stack<'a>(
        &'a self,
        recording: &'a Recording,
        stack: StackId,
    ) -> impl DoubleEndedIterator<Item = (FunctionId, u32)> + 'a {
        self.frames.of_stack(recording, stack)
    }

    /// The paths of all stacks, made for the first tree.
    pub(super) fn paths(&self, recording: &Recording) -> &Paths {
        self.paths.get_or_init(|| Paths::new(recording, &self.frames, PATHS_MAX))
    }

    /// Limits the paths before the first tree asks for them.
    #[cfg(test)]
    pub(super) fn limit_paths(&self, recording: &Recording, paths_max: usize) {
        self.paths.set(Paths::new(recording, &self.frames, paths_max)).unwrap();
    }

    fn shapes(&self, recording: &Recording) -> &IdVec<StackId, Shape> {
        self.shapes.get_or_init(|| {
            let of = |stack: &longpole_model::Stack| {
                let frames: Vec<(FunctionId, u32)> = self.lines_of_stack(recording, stack.id).collect();
                Shape::new(&self.list, &frames)
            };
            recording.stacks.iter().map(of).collect()
        })
    }

    /// The innermost function of the program's own code in a stack, with its line; `None` where there is none.
    pub fn own_of_stack(&self, recording: &Recording, stack: StackId) -> Option<(FunctionId, u32)> {
        let own = self.shapes(recording).get(stack)?.own?;
        self.lines_of_stack(recording, stack).nth(own as usize)
    }

    /// The function that waits in a stack, with its line: the program's own, or else the innermost that is not the system's.
    pub fn waiting_in_stack(&self, recording: &Recording, stack: StackId) -> Option<(FunctionId, u32)> {
        let is_system = |function: FunctionId| matches!(self.list[function].whose, CodeOrigin::System | CodeOrigin::Kernel);
        let other = || self.lines_of_stack(recording, stack).find(|(function, _)| !is_system(*function));
        self.own_of_stack(recording, stack).or_else(other)
    }

    fn weigh_stacks(&self, recording: &Recording, stacks: &[(StackId, u64, u64)], frames: Frames) -> IdVec<FunctionId, Weight> {
        let mut weights = IdVec::filled(Weight::default(), self.list.len());
        // The last stack each function was seen in: a recursive one counts once per stack.
        let mut seen = IdVec::filled(usize::MAX, self.list.len());
        for (i, &(stack, nanos, count)) in stacks.iter().enumerate() {
            let telling = match frames {
                Frames::All => usize::MAX,
                Frames::Telling => self.shapes(recording).get(stack).map_or(0, |shape| shape.telling as usize),
            };
            for (depth, f) in self.of_stack(recording, stack).enumerate().take(telling) {
                if depth == 0 {
                    weights[f].self_time += UnsignedNanos(nanos);
                } else if frames == Frames::Telling && self.list[f].whose == CodeOrigin::Interpreter {
                    continue;
                }
                if seen[f] != i {
                    seen[f] = i;
                    weights[f].total += UnsignedNanos(nanos);
                    weights[f].samples += count;
                }
            }
        }
        weights
    }

    /// The functions that occur in these frames of these samples, by self weight, then by total.
    pub fn weigh(&self, recording: &Recording, samples: impl Iterator<Item = (StackId, u64)>, frames: Frames) -> Vec<FunctionWeight> {
        Self::listed(&self.weigh_stacks(recording, &per_stack(recording, samples), frames))
    }

    fn listed(weights: &IdVec<FunctionId, Weight>) -> Vec<FunctionWeight> {
        let seen = weights.enumerated().filter(|(_, weight)| weight.samples > 0);
        let mut out: Vec<FunctionWeight> = seen.map(|(function, &weight)| FunctionWeight { function, weight }).collect();
        out.sort_by_key(|f| (Reverse(f.weight.self_time), Reverse(f.weight.total), f.function));
        out
    }

    /// The functions that occur in these frames of these samples and waits, by self weight, then by total. The self weight of a wait is
    /// that of the function that waits.
    pub fn weigh_all(
        &self,
        recording: &Recording,
        samples: impl Iterator<Item = (StackId, u64)>,
        waits: impl Iterator<Item = (StackId, u64)>,
        frames: Frames,
    ) -> Vec<FunctionWeight> {
        let mut weights = self.weigh_stacks(recording, &per_stack(recording, samples), frames);
        let waits = per_stack(recording, waits);
        for (sum, waited) in weights.iter_mut().zip(self.weigh_stacks(recording, &waits, frames)) {
            sum.total += waited.total;
            sum.samples += waited.samples;
        }
        for &(stack, nanos, _) in &waits {
            if let Some((function, _)) = self.waiting_in_stack(recording, stack) {
                weights[function].self_time += UnsignedNanos(nanos);
            }
        }
        Self::listed(&weights)
    }

    /// What lies on the lines of these functions, most first; lines that are not known are left out. A line counts once per stack,
    /// however often it stands in it.
    pub fn weigh_lines(
        &self,
        recording: &Recording,
        functions: &[FunctionId],
        samples: impl Iterator<Item = (StackId, u64)>,
        waits: impl Iterator<Item = (StackId, u64)>,
    ) -> Vec<Vec<LineWeight>> {
        let mut slot: IdVec<FunctionId, Option<usize>> = IdVec::filled(None, self.list.len());
        functions.iter().enumerate().for_each(|(i, &function)| slot[function] = Some(i));
        let mut sums: Vec<FastMap<u32, LineWeight>> = vec![FastMap::default(); functions.len()];
        let mut seen: FastMap<(usize, u32), usize> = FastMap::default();
        let sampled = per_stack(recording, samples).into_iter().map(|it| (it, false));
        let waited = per_stack(recording, waits).into_iter().map(|it| (it, true));
        for (number, ((stack, nanos, _), is_wait)) in sampled.chain(waited).enumerate() {
            for (depth, (function, line)) in self.lines_of_stack(recording, stack).enumerate() {
                let Some(place) = slot[function].filter(|_| line > 0) else { continue };
                let sum = sums[place].entry(line).or_insert(LineWeight { line, ..LineWeight::default() });
                if depth == 0 && !is_wait {
                    sum.self_time += UnsignedNanos(nanos);
                }
                // The last stack that the line was seen in.
                if seen.insert((place, line), number) != Some(number) {
                    let total = if is_wait { &mut sum.waited } else { &mut sum.total };
                    *total += UnsignedNanos(nanos);
                }
            }
        }
        let list = |sums: FastMap<u32, LineWeight>| {
            let mut lines: Vec<LineWeight> = sums.into_values().collect();
            lines.sort_by_key(|it| (Reverse(it.total + it.waited), it.line));
            lines
        };
        sums.into_iter().map(list).collect()
    }

    /// The functions of this name; where there are none, those whose name ends with it behind a `::`, a `.` or a `/`; else those that
    /// have it in their name. By total weight.
    pub fn named(&self, name: &str) -> Vec<FunctionId> {
        let find = |is: &dyn Fn(&str) -> bool| self.list.ids().filter(|&i| is(&self.list[i].function)).collect::<Vec<FunctionId>>();
        let called = |function: &str| Functions::is_called(function, name);
        let ways: [&dyn Fn(&str) -> bool; 3] = [&|function| function == name, &called, &|function| function.contains(name)];
        ways.into_iter().map(find).find(|found| !found.is_empty()).unwrap_or_default()
    }

    /// Whether a function has this name, in any module.
    pub fn is_called(function: &str, name: &str) -> bool {
        function.strip_suffix(name).is_some_and(|module| module.is_empty() || module.ends_with([':', '.', '/']))
    }

    /// For each stack of the recording whether the function occurs in it.
    pub fn stacks_with(&self, recording: &Recording, function: FunctionId) -> IdVec<StackId, bool> {
        recording.stacks.iter().map(|s| self.of_stack(recording, s.id).any(|f| f == function)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::text;

    fn all(recording: &Recording) -> impl Iterator<Item = (StackId, u64)> + '_ {
        recording.samples.iter().map(|s| (s.stack, s.weight_nanos))
    }

    #[test]
    fn a_recursive_function_counts_once_in_its_total() {
        let recording = text::parse("sample 0ms x4 main;visit;visit;visit\nsample 4ms x1 main;visit\n").unwrap();
        let functions = Functions::new(&recording);
        let visit = functions.list.iter().find(|f| f.function == "visit").unwrap();
        assert_eq!(visit.weight, Weight { total: UnsignedNanos(5_000_000), self_time: UnsignedNanos(5_000_000), samples: 5 });
        assert_eq!(functions.list[FunctionId::at(0)].function, "main", "equal totals are ordered by name");
    }

    #[test]
    fn what_starts_a_thread_and_what_interprets_is_left_out_where_it_tells_nothing() {
        let text = "sample 0ms x4 std::rt::lang_start;main;std::sort;_PyEval_EvalFrameDefault;less\nsample 4ms x2 std::rt::lang_start\n";
        let recording = text::parse(text).unwrap();
        let functions = Functions::new(&recording);
        let names = |frames: Frames| -> Vec<(&str, u64)> {
            let list = functions.weigh(&recording, all(&recording), frames).into_iter();
            list.map(|it| (functions.list[it.function].function.as_str(), it.weight.total.0 / 1_000_000)).collect()
        };
        let whole = [("less", 4), ("std::rt::lang_start", 6), ("_PyEval_EvalFrameDefault", 4), ("main", 4), ("std::sort", 4)];
        assert_eq!(names(Frames::All), whole);
        assert_eq!(names(Frames::Telling), [("less", 4), ("std::rt::lang_start", 2), ("main", 4), ("std::sort", 4)]);
    }

    #[test]
    fn who_waits_is_the_innermost_function_of_the_program() {
        let recording = text::parse(
            "run x 0..9ms\nwait 1..8ms pid 1 network main;shop::pay;tokio::net::read;std::io::read\nwait 2..3ms pid 1 lock runtime.futex\n",
        )
        .unwrap();
        let functions = Functions::new(&recording);
        let waits = recording.waits.iter().map(|wait| functions.waiting_in_stack(&recording, wait.stack.unwrap()).unwrap().0);
        let names: Vec<&str> = waits.map(|function| functions.list[function].function.as_str()).collect();
        assert_eq!(names, ["shop::pay", "runtime.futex"]);
    }

    #[test]
    fn lines_of_a_function_have_their_samples_and_their_waits() {
        let recording = text::parse(
            "run x 0..99ms\nsample 0ms x3 main@m.rs:3;work@m.rs:8\nsample 3ms x2 main@m.rs:4;work@m.rs:8\nwait 9..19ms pid 1 sleep main@m.rs:4;nap\n",
        )
        .unwrap();
        let functions = Functions::new(&recording);
        let main = functions.named("main");
        let waits = recording.waits.iter().map(|wait| (wait.stack.unwrap(), wait.nanos()));
        let lines = functions.weigh_lines(&recording, &main, all(&recording), waits);
        let millis: Vec<_> = lines[0].iter().map(|it| (it.line, it.total.0 / 1_000_000, it.self_time.0, it.waited.0 / 1_000_000)).collect();
        assert_eq!(millis, [(4, 2, 0, 10), (3, 3, 0, 0)]);
        assert_eq!(functions.named("nap").len(), 1);
    }

    #[test]
    fn a_line_is_that_with_the_most_samples_and_unnamed_code_has_a_name() {
        let mut recording = text::parse("sample 0ms x2 main;burn@b.rs:7\nsample 2ms x3 main;burn@b.rs:9\nsample 5ms lost\n").unwrap();
        let lost = recording.locations.iter_mut().find(|l| l.frames[0].function == "lost").unwrap();
        lost.frames.clear();
        let functions = Functions::new(&recording);
        let names: Vec<(&str, u32)> = functions.list.iter().map(|f| (f.function.as_str(), f.line)).collect();
        assert_eq!(names, [("burn", 9), ("main", 0), ("program+0x4", 0)]);
    }

    /// A minute and more, where each line is looked for among all before it.
    #[test]
    fn three_hundred_thousand_lines_in_one_stack_are_weighed_at_once() {
        let mut recording = text::parse("sample 0ms x3 main@m.rs:3\nsample 3ms main@m.rs:4\n").unwrap();
        let first = recording.locations[0].frames[0].clone();
        recording.locations[0].frames = (1..=300_000).map(|line| Frame { line, ..first.clone() }).collect();
        let functions = Functions::new(&recording);
        let begin = std::time::Instant::now();
        let lines = functions.weigh_lines(&recording, &functions.named("main"), all(&recording), std::iter::empty());
        assert!(begin.elapsed() < std::time::Duration::from_secs(5), "{:?}", begin.elapsed());
        assert_eq!(lines[0].len(), 300_000);
        assert!(lines[0].iter().all(|line| line.total <= UnsignedNanos(4_000_000)));
    }
}
