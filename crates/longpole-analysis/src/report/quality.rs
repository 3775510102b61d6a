//! What is missing or doubtful.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::stack::LocationKind;
use longpole_model::{Id, LocationId, Loss, LossKind, Nanos, NodeId, StackId, StateKind, UnsignedNanos};

use crate::code::origin::script_language;
use crate::note::Note;
use crate::report::Report;
use crate::schedule::poles::Pole;
use crate::time::sampling_coverage::ThreadTime;
use crate::tree::forest::base_name;

/// Scripts that take less than this part of all time on CPUs, as a divisor, are not worth a note.
const SCRIPTS_PART: u64 = 20;

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
        let mut notes: Vec<Note> =
            unseen.into_iter().chain(losses).chain(self.runs_apart()).chain(self.scripts_unnamed()).chain(self.notes().cloned()).collect();
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
            Note::Loss(loss) | Note::WaitsNotSeen { loss, .. } => match loss.kind {
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
                LossKind::WaitsNotSeen => of_each(loss.count, WAIT_NOT_SEEN),
                LossKind::ValuesRedacted
                | LossKind::TextReplaced
                | LossKind::AttributesCut
                | LossKind::OtherSignals
                | LossKind::SpansDuplicate
                | LossKind::FormatCannotHold => return None,
                _ => Nanos::ZERO,
            },
            Note::UnfinishedRun | Note::RunsApart(_) | Note::Watched => wall,
            Note::KernelTime { unsampled, .. } => at_most_wall(unsampled.0),
            Note::ScriptsUnnamed { on_cpu, .. } => at_most_wall(on_cpu.0),
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

    /// A file of several runs, one long after the other.
    fn runs_apart(&self) -> Option<Note> {
        let is_idle = self.recording.processes.is_empty() && self.forest.len() > 1 && self.path.is_mostly_of_run(&self.forest);
        is_idle.then(|| Note::RunsApart(self.path.on_path[NodeId::RUN]))
    }
}

/// Why the functions of a file have no names, in the words of `longpole-symbols`.
const WHY_NAMELESS: [&str; 7] = [
    "stripped of symbols",
    "file missing",
    "file deleted",
    "not a file",
    "not an elf file",
    "malformed elf file",
    "file replaced since it was mapped",
];

/// The losses as notes: files without function names together by reason, and with the first loss of waits the time of the path that was blocked
/// and not sampled.
fn losses(losses: &[Loss], blocked_unseen: Nanos) -> Vec<Note> {
    let mut files: Vec<(&str, Vec<String>)> = Vec::new();
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
            (LossKind::WaitsNotSeen, _) => match on_path.take() {
                Some(on_path) => notes.push(Note::WaitsNotSeen { loss: loss.clone(), on_path }),
                None => notes.push(Note::Loss(loss.clone())),
            },
            _ => notes.push(Note::Loss(loss.clone())),
        }
    }
    notes.extend(
        files.into_iter().map(|(reason, paths)| Note::NamesMissing { reason: reason.to_owned(), files: paths.into_iter().collect() }),
    );
    notes
}

#[cfg(test)]
mod tests {
    use longpole_model::{Loss, LossKind, text};

    use crate::Report;

    #[test]
    fn files_without_function_names_are_one_note_for_each_reason() {
        let mut recording = text::parse("run x 0..100ms\n").unwrap();
        let details = [
            "stripped of symbols: /bin/a",
            "file deleted: /tmp/b",
            "stripped of symbols: /bin/c",
            "at offset 9, a record is cut: /tmp/jit-1.dump",
        ];
        recording.losses = details.map(|detail| Loss::new(LossKind::SymbolsUnreadable, 1, detail)).into();
        let report = Report::new(recording);
        let notes: Vec<(u64, String)> = report.quality().iter().map(|note| (note.count(), crate::words::note(note))).collect();
        let expected = [
            (1, "at offset 9, a record is cut: /tmp/jit-1.dump"),
            (2, "a, c (stripped of symbols); their code shows as a+0xADDRESS"),
            (1, "b (file deleted); their code shows as b+0xADDRESS"),
        ];
        assert_eq!(notes, expected.map(|(count, text)| (count, text.to_owned())));
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
        let expected =
            ["spans_never_arrived", "functions_not_seen", "waits_not_seen", "stacks_truncated", "symbols_unreadable", "values_redacted"];
        assert_eq!(codes, expected);
    }
}
