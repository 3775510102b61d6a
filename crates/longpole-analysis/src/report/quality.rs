//! What is missing or doubtful.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::stack::LocationKind;
use longpole_model::{CaptureMode, Id, LocationId, Loss, LossKind, Nanos, NodeId, StackId, StateKind, UnsignedNanos};

use crate::code::origin::script_language;
use crate::note::Note;
use crate::report::Report;
use crate::schedule::poles::Pole;
use crate::time::sampling_coverage::ThreadTime;
use crate::tree::forest::base_name;

/// Scripts that take less than this part of all time on CPUs, as a divisor, are not worth a note.
const SCRIPTS_PART: u64 = 20;

/// Time of the critical path that is unaccounted is worth a note from this part of the run on, as a divisor.
const UNACCOUNTED_PART: i64 = 20;

/// Samples in functions without a name are worth a note from this part of all samples on, as a divisor.
const UNNAMED_PART: u64 = 20;

/// The reason of `longpole-symbols` for an address between the symbols of a file.
const NO_SYMBOL: &str = "no symbol at this address";

/// A wait that was not sampled: most are this short.
const WAIT_NOT_SEEN: Nanos = Nanos(5_000_000);

impl Report {
    /// What a reader of the forest and of the savings must know. A limit of concurrency that makes no saving a range matters to nobody.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        let is_point = |pole: &Pole| [pole.savings.if_zero, pole.savings.if_half, pole.savings.own].iter().all(|it| it.low == it.high);
        let has_ranges = !self.poles().iter().all(is_point);
        let limits = self.replay.notes().iter().filter(move |note| has_ranges || !matches!(note, Note::LimitedSlots(_)));
        self.forest.notes.iter().chain(limits)
    }

    /// Everything that is missing or doubtful, in the order of what it costs the reader: first the note that makes the most time doubtful, last
    /// those that only say what longpole did.
    pub fn quality(&self) -> Vec<Note> {
        let losses = losses(&self.recording.losses, self.path_states().of(StateKind::BlockedUnseen));
        let unseen = ThreadTime::of(&self.recording).notes(&self.recording, self.wall());
        let has_savings = !self.poles().is_empty();
        let unseen = unseen.into_iter().map(|note| if has_savings { note } else { note.without_savings() });
        let mut notes: Vec<Note> = unseen
            .chain(losses)
            .chain(self.runs_apart())
            .chain(self.unaccounted())
            .chain(self.scripts_unnamed())
            .chain(self.functions_unnamed())
            .chain(self.notes().cloned())
            .collect();
        // Stable: notes of one cost stay in this order.
        let period = self.sample_period();
        notes.sort_by_cached_key(|note| Reverse(self.cost(note, period)));
        notes
    }

    /// How much time a note makes doubtful, at most that of the run; `None` if it makes none doubtful. `period` is what a sample stands for.
    fn cost(&self, note: &Note, period: Nanos) -> Option<Nanos> {
        let wall = self.wall();
        let at_most_wall = |nanos: u64| Nanos::from_u64(nanos).min(wall);
        let of_each = |count: u64, nanos: Nanos| at_most_wall(count.saturating_mul(nanos.0.unsigned_abs()));
        Some(match note {
            Note::Loss(loss) => match loss.kind {
                LossKind::RecorderKilled
                | LossKind::NotWritten
                | LossKind::WalTorn
                | LossKind::WalDamaged
                | LossKind::ProfilingRefused
                | LossKind::RequestsRefused
                | LossKind::SpansNeverArrived
                | LossKind::DroppedByEmitter
                | LossKind::DrainTimedOut
                | LossKind::FileCut => wall,
                LossKind::SamplesLost
                | LossKind::StacksTruncated
                | LossKind::StacksUnwindFailed
                | LossKind::FunctionsNotSeen
                | LossKind::ContextTorn
                | LossKind::ContextNotSeen
                | LossKind::ContextDisagrees => of_each(loss.count, period),
                // The time of the path that they are a part of stands before them.
                LossKind::WaitsNotSeen => match self.path_states().of(StateKind::BlockedUnseen) {
                    Nanos::ZERO => of_each(loss.count, WAIT_NOT_SEEN),
                    on_path => of_each(loss.count, WAIT_NOT_SEEN).min(on_path),
                },
                LossKind::ValuesRedacted
                | LossKind::TextReplaced
                | LossKind::AttributesCut
                | LossKind::OtherSignals
                | LossKind::SpansDuplicate
                | LossKind::FormatCannotHold => return None,
                _ => Nanos::ZERO,
            },
            Note::StacksDeep { stacks, .. } => of_each(*stacks, period),
            Note::BlockedUnseen(on_path) => *on_path,
            Note::UnfinishedRun | Note::RunsApart(_) | Note::Watched => wall,
            Note::KernelTime { unsampled, .. } => at_most_wall(unsampled.0),
            Note::ScriptsUnnamed { on_cpu, .. } => at_most_wall(on_cpu.0),
            Note::Unaccounted { on_path, outside, .. } => *on_path - *outside,
            // The sum of all threads: much of it lies beside the path.
            Note::CpuBusy { ready, .. } => at_most_wall(ready.0 / 4),
            Note::ForksFolded(_) | Note::RootsNested(_) | Note::LegacyJoined { .. } => return None,
            _ => Nanos::ZERO,
        })
    }

    /// The time that a sample stands for, on average.
    fn sample_period(&self) -> Nanos {
        let samples = &self.recording.samples;
        let all: u128 = samples.iter().map(|sample| u128::from(sample.weight_nanos)).sum();
        Nanos(i64::try_from(all / samples.len().max(1) as u128).unwrap_or(i64::MAX))
    }

    /// The languages of scripts whose functions have no names, as far as they hold much of the time on CPUs.
    fn scripts_unnamed(&self) -> Vec<Note> {
        let recording = &self.recording;
        let languages: Vec<Option<&'static str>> = recording.mappings.iter().map(|it| script_language(base_name(&it.path))).collect();
        if languages.iter().all(Option::is_none) {
            return Vec::new();
        }
        let of_location = |location: LocationId| match recording.location(location)?.kind {
            LocationKind::Code { mapping, .. } => *languages.get(mapping.place())?,
            _ => None,
        };
        let mut of_stack: FastMap<StackId, Option<&'static str>> = FastMap::default();
        let mut sums: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut all = 0_u64;
        for sample in &recording.samples {
            all = all.saturating_add(sample.weight_nanos);
            let of = || recording.stack(sample.stack)?.locations.iter().find_map(|location| of_location(*location));
            if let Some(language) = *of_stack.entry(sample.stack).or_insert_with(of) {
                let sum = sums.entry(language).or_default();
                *sum = sum.saturating_add(sample.weight_nanos);
            }
        }
        let is_much = |nanos: &u64| *nanos >= all / SCRIPTS_PART;
        let much = sums.into_iter().filter(|(_, nanos)| is_much(nanos));
        much.map(|(language, nanos)| Note::ScriptsUnnamed { language, on_cpu: UnsignedNanos(nanos) }).collect()
    }

    /// Much time on the path in which a recorder that samples recorded nothing.
    fn unaccounted(&self) -> Option<Note> {
        let recording = &self.recording;
        // What other tools leave out of their files is for them to say.
        let is_own = matches!(recording.run.mode, CaptureMode::User { .. } | CaptureMode::Perf);
        let has_records = !recording.samples.is_empty() || !recording.cpu_slices.is_empty();
        let was_sampled = is_own && has_records && !self.is_attached();
        let states = self.path_states();
        let on_path = states.of(StateKind::Unaccounted);
        let is_much = on_path > Nanos::ZERO && on_path >= self.wall() / UNACCOUNTED_PART;
        let outside = || self.outside_processes().min(on_path);
        (was_sampled && is_much).then(|| Note::Unaccounted { on_path, outside: outside(), is_estimate: !states.is_exact() })
    }

    /// What no fix can save more than: the time in which the command's processes are there. All of the run where the recorder did not see its command.
    pub(super) fn savable(&self) -> Nanos {
        let (recording, wall) = (&self.recording, self.wall());
        let has_command = recording.run.root_pid.is_some_and(|root| recording.processes.iter().any(|process| process.pid == root));
        if has_command && !self.is_attached() { wall - self.outside_processes() } else { wall }
    }

    /// Time of the run before its first process starts and after its last one ends: the recorder starts the command and notices its end.
    /// Processes outside the run, as of a recorder with another clock, bound nothing.
    fn outside_processes(&self) -> Nanos {
        let run = Nanos::ZERO..=self.wall();
        // One that has not ended may be there until the end.
        let lives = self.recording.processes.iter().filter_map(|process| {
            let end = process.end.map_or(Some(self.wall()), |end| self.offset(end))?;
            Some((self.offset(process.start)?, end))
        });
        let inside = lives.filter(|(start, end)| start <= run.end() && end >= run.start());
        let bounds = inside.reduce(|(first, last), (start, end)| (first.min(start), last.max(end)));
        let Some((first, last)) = bounds else { return Nanos::ZERO };
        first.max(Nanos::ZERO) + (self.wall() - last).max(Nanos::ZERO)
    }

    /// Files that name some of their functions, and not those that many samples are in.
    fn functions_unnamed(&self) -> Option<Note> {
        let recording = &self.recording;
        let unnamed_in = |stack: StackId| {
            let location = *recording.stack(stack)?.locations.first()?;
            let LocationKind::Code { mapping, .. } = recording.location(location)?.kind else { return None };
            let is_unnamed = self
                .functions
                .of_stack(recording, stack)
                .next()
                .is_some_and(|function| self.functions.list[function].reason.as_deref() == Some(NO_SYMBOL));
            is_unnamed.then(|| recording.mapping(mapping)).flatten().map(|mapping| mapping.path.as_str())
        };
        let mut of_stack: FastMap<StackId, Option<&str>> = FastMap::default();
        let mut files: BTreeMap<&str, u64> = BTreeMap::new();
        for sample in &recording.samples {
            if let Some(file) = *of_stack.entry(sample.stack).or_insert_with(|| unnamed_in(sample.stack)) {
                *files.entry(file).or_default() += 1;
            }
        }
        let samples: u64 = files.values().sum();
        let mut files: Vec<(&str, u64)> = files.into_iter().collect();
        files.sort_by_key(|(_, samples)| Reverse(*samples));
        let is_much = samples > 0 && samples >= recording.samples.len() as u64 / UNNAMED_PART;
        is_much.then(|| Note::FunctionsUnnamed { samples, files: files.into_iter().map(|(file, _)| file.to_owned()).collect() })
    }

    /// A file of several runs, one long after the other.
    fn runs_apart(&self) -> Option<Note> {
        let is_idle = self.recording.processes.is_empty() && self.forest.len() > 1 && self.path.is_mostly_of_run(&self.forest);
        is_idle.then(|| Note::RunsApart(self.path.on_path[NodeId::RUN]))
    }
}

/// Why the functions of a file have no names, in the words of `longpole-symbols`.
const WHY_NAMELESS: [&str; 8] = [
    "stripped",
    // An older longpole's words for the same.
    "stripped of symbols",
    "file missing",
    "file deleted",
    "not a file",
    "not an elf file",
    "malformed elf file",
    "file replaced since it was mapped",
];

/// What was copied of a stack that is deeper than that, in KiB, in the words of `longpole-symbols`: `the stack is deeper than the 16 KiB that longpole
/// copies`.
fn copied_kib(detail: &str) -> Option<u64> {
    detail.strip_prefix("the stack is deeper than the ")?.strip_suffix(" KiB that longpole copies")?.parse().ok()
}

/// The losses as notes: files without function names together by reason, stacks that are too deep together, and before the first loss of waits the
/// time of the path that was blocked and not sampled.
fn losses(losses: &[Loss], blocked_unseen: Nanos) -> Vec<Note> {
    let mut files: Vec<(&str, Vec<String>)> = Vec::new();
    let mut deep: Option<(u64, [u64; 2])> = None;
    let mut notes = Vec::new();
    let mut on_path = Some(blocked_unseen).filter(|nanos| *nanos > Nanos::ZERO);
    for loss in losses {
        match (loss.kind, loss.detail.split_once(": /")) {
            (LossKind::SymbolsUnreadable, Some((reason, path))) if WHY_NAMELESS.contains(&reason) => {
                match files.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, paths)) => paths.push(format!("/{path}")),
                    None => files.push((reason, vec![format!("/{path}")])),
                }
            }
            (LossKind::StacksTruncated, _) if let Some(kib) = copied_kib(&loss.detail) => {
                let (stacks, [least, most]) = deep.unwrap_or((0, [kib; 2]));
                deep = Some((stacks.saturating_add(loss.count), [least.min(kib), most.max(kib)]));
            }
            (LossKind::WaitsNotSeen, _) => {
                notes.extend(on_path.take().map(Note::BlockedUnseen));
                notes.push(Note::Loss(loss.clone()));
            }
            _ => notes.push(Note::Loss(loss.clone())),
        }
    }
    notes.extend(deep.map(|(stacks, copied_kib)| Note::StacksDeep { stacks, copied_kib }));
    notes.extend(
        files.into_iter().map(|(reason, paths)| Note::NamesMissing { reason: reason.to_owned(), files: paths.into_iter().collect() }),
    );
    notes
}

#[cfg(test)]
mod tests {
    use longpole_model::{Loss, LossKind, Monotonic, text};

    use crate::Report;

    #[test]
    fn files_without_function_names_are_one_note_for_each_reason() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        let details = ["stripped: /bin/a", "file deleted: /tmp/b", "stripped: /bin/c", "at offset 9, a record is cut: /tmp/jit-1.dump"];
        recording.losses = details.map(|detail| Loss::new(LossKind::SymbolsUnreadable, 1, detail)).into();
        let report = Report::new(recording);
        let notes: Vec<(u64, String)> = report.quality().iter().map(|note| (note.count(), crate::words::note(note))).collect();
        let expected = [
            (1, "at offset 9, a record is cut: /tmp/jit-1.dump"),
            (2, "a, c (stripped); their code shows as a+0xADDRESS"),
            (1, "b (file deleted); its code shows as b+0xADDRESS"),
        ];
        assert_eq!(notes, expected.map(|(count, text)| (count, text.to_owned())));
    }

    #[test]
    fn stacks_that_are_too_deep_are_one_note() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        let deep = [(60, 16), (40, 63), (7, 32)];
        recording.losses = deep
            .map(|(count, kib)| {
                Loss::new(LossKind::StacksTruncated, count, format!("the stack is deeper than the {kib} KiB that longpole copies"))
            })
            .into();
        recording.losses.push(Loss::new(LossKind::StacksTruncated, 2, "more functions of the kernel than kernel.perf_event_max_stack"));
        let report = Report::new(recording);
        let notes: Vec<(u64, String)> = report.quality().iter().map(|note| (note.count(), crate::words::note(note))).collect();
        let expected = [
            (2, "more functions of the kernel than kernel.perf_event_max_stack"),
            (107, "deeper than the 16 to 63 KiB that longpole copies"),
        ];
        assert_eq!(notes, expected.map(|(count, text)| (count, text.to_owned())));
    }

    /// The notes of a recording with this code, in words.
    fn said(report: &Report, code: &str) -> Vec<String> {
        report.quality().iter().filter(|note| note.code() == code).map(crate::words::note).collect()
    }

    #[test]
    fn time_of_the_path_without_a_record_is_a_note() {
        let of = |rows: &str| said(&Report::new(text::parse(rows).unwrap()), "unaccounted");
        // longpole notices the end of the command 60 ms late.
        let mut late = text::parse("run x 0..100ms\ncpu 2..40ms pid 1\n").unwrap();
        let at = |millis: u64| Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000);
        late.processes.iter_mut().for_each(|process| (process.start, process.end) = (at(2), Some(at(40))));
        let after = "62.0ms of the critical path, before the command's first process or after its last; no fix saves that";
        assert_eq!(said(&Report::new(late), "unaccounted"), [after]);
        assert_eq!(of("run x 0..100ms\ncpu 0..98ms pid 1\n"), [""; 0]);
        assert_eq!(of("run x 0..100ms\n"), [""; 0], "nothing was sampled");
        let estimate = "run x 0..100ms\n  build 0..100ms svc pid 1\nsample 0ms x40 pid 1 [build] main;hash\n";
        assert_eq!(of(estimate), ["60.0ms of the critical path, between samples; mostly short waits"]);
    }

    #[test]
    fn what_makes_most_of_the_time_doubtful_comes_first() {
        let mut recording = text::parse("run x 0..100ms\nsample 10ms pid 1 main\nsample 20ms pid 1 main\n").unwrap();
        recording.samples.iter_mut().for_each(|sample| sample.weight_nanos = 1_000_000);
        let losses = [
            (LossKind::ValuesRedacted, 900),
            (LossKind::SymbolsUnreadable, 3),
            (LossKind::WaitsNotSeen, 4),
            (LossKind::StacksTruncated, 5),
            (LossKind::FunctionsNotSeen, 50),
            (LossKind::SpansNeverArrived, 1),
        ];
        recording.losses = losses.map(|(kind, count)| Loss::new(kind, count, "")).into();
        let report = Report::new(recording);
        let codes: Vec<&str> = report.quality().iter().map(crate::note::Note::code).collect();
        let expected = [
            "spans_never_arrived",
            "unaccounted",
            "functions_not_seen",
            "waits_not_seen",
            "stacks_truncated",
            "symbols_unreadable",
            "values_redacted",
        ];
        assert_eq!(codes, expected);
    }
}
