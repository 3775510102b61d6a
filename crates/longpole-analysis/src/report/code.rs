//! What ran in samples and waits: functions, lines, and the function to name.

use longpole_model::{FunctionId, SampleId, StackId, Text, WaitId};

use crate::code::functions::{Frames, FunctionWeight, LineWeight};
use crate::code::named::{self, Named};
use crate::profile::FunctionSum;
use crate::report::{CutWait, Report};

impl Report {
    /// All samples of the recording.
    pub fn all_samples(&self) -> impl Iterator<Item = SampleId> + use<> {
        self.recording.sample_ids()
    }

    /// All waits of the recording.
    pub fn all_waits(&self) -> impl Iterator<Item = WaitId> + use<> {
        self.recording.wait_ids()
    }

    pub(super) fn stacks<'a>(&'a self, samples: impl Iterator<Item = SampleId> + 'a) -> impl Iterator<Item = (StackId, u64)> + 'a {
        samples.map(|s| &self.recording.samples[s]).map(|s| (s.stack, s.weight_nanos))
    }

    /// The functions of these samples: first the one to name (see [`Report::named`]), then by self weight. Those that only start and
    /// call what is in the samples are left out.
    pub fn top_functions(&self, samples: &[SampleId]) -> Vec<FunctionWeight> {
        let mut functions = self.functions.weigh(&self.recording, self.stacks(samples.iter().copied()), Frames::Telling);
        if let Some(named) = self.named(samples)
            && let Some(place) = functions.iter().position(|f| f.function == named.function)
        {
            functions[..=place].rotate_right(1);
        }
        functions
    }

    /// The functions of these samples and waits, by self weight, then by total. A wait is in itself in the function of the program that
    /// waits, not in the call of a library or of the system that it waits by.
    pub fn weigh(&self, samples: &[SampleId], waits: &[CutWait], frames: Frames) -> Vec<FunctionWeight> {
        self.functions.weigh_all(&self.recording, self.stacks(samples.iter().copied()), self.stacks_of_waits(waits), frames)
    }

    /// The functions of the whole recording, by self weight, then by total.
    pub fn functions_by_self(&self) -> Vec<FunctionWeight> {
        self.functions.weigh(&self.recording, self.stacks(self.all_samples()), Frames::Telling)
    }

    /// How much time of the samples each function has, for a comparison.
    pub fn function_sums(&self) -> Vec<FunctionSum> {
        let nanos = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        let sum = |it: FunctionWeight| FunctionSum {
            function: Text::from(self.functions.list[it.function].function.as_str()),
            file: Text::from(self.functions.list[it.function].file.as_str()),
            total: nanos(it.weight.total.0),
            own: nanos(it.weight.self_time.0),
        };
        self.functions_by_self().into_iter().map(sum).collect()
    }

    /// What lies on the lines of these functions in these samples and waits, most first.
    pub fn lines(&self, functions: &[FunctionId], samples: &[SampleId], waits: &[CutWait]) -> Vec<Vec<LineWeight>> {
        self.functions.weigh_lines(&self.recording, functions, self.stacks(samples.iter().copied()), self.stacks_of_waits(waits))
    }

    /// What lies on the lines of a function in the whole recording, most first.
    pub fn lines_of(&self, function: FunctionId) -> Vec<LineWeight> {
        let (samples, waits): (Vec<SampleId>, Vec<CutWait>) = (self.all_samples().collect(), self.uncut(self.all_waits()));
        self.lines(&[function], &samples, &waits).pop().unwrap_or_default()
    }

    /// The functions that were seen at this line of a file, which may be named without its folders; by total weight.
    pub fn functions_at(&self, file: &str, line: u32) -> Vec<FunctionId> {
        let is_file = |path: &str| path.strip_suffix(file).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'));
        let of_file = |&function: &FunctionId| is_file(&self.functions.list[function].file);
        let in_file: Vec<FunctionId> = self.functions.list.ids().filter(of_file).collect();
        let (samples, waits): (Vec<SampleId>, Vec<CutWait>) = (self.all_samples().collect(), self.uncut(self.all_waits()));
        let lines = self.lines(&in_file, &samples, &waits);
        let has_line = |lines: &Vec<LineWeight>| lines.iter().any(|it| it.line == line);
        in_file.into_iter().zip(lines).filter(|(_, lines)| has_line(lines)).map(|(function, _)| function).collect()
    }

    /// The function to name for these samples.
    pub fn named(&self, samples: &[SampleId]) -> Option<Named> {
        named::named(&self.recording, &self.functions, || self.stacks(samples.iter().copied()))
    }
}
