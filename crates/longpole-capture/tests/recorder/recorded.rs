//! Records a program, and what was recorded of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use longpole_capture::recorder::{Options, Recorder, Stats};
use longpole_model::sink::SinkError;
use longpole_model::stack::LocationKind;
use longpole_model::{
    CaptureMode, CpuSlice, LocationId, Loss, Mapping, Observation, ObservationSink, Runtime, Sample, StackId, VirtOffset, Wait,
};
use longpole_symbols::{HostFiles, Symbolizer};
use longpole_testing::turn;

use crate::program::{me, role_command};

#[derive(Clone, Default)]
pub(crate) struct Seen(pub(crate) Arc<Mutex<Vec<Observation>>>);

impl ObservationSink for Seen {
    fn observe(&mut self, observation: Observation) -> Result<(), SinkError> {
        self.0.lock().unwrap().push(observation);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}

/// A folder of this process's own.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("longpole-recorder-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A child that waits at a gate: a shell that executes the command when it has read a line.
pub(crate) struct Gated(pub(crate) Child);

impl Gated {
    pub(crate) fn new(command: &Command) -> Gated {
        let mut gate = Command::new("/bin/sh");
        gate.args(["-c", "read line; exec \"$0\" \"$@\""]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            gate.env(name, value.unwrap_or_default());
        }
        Gated(gate.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn run(mut self) {
        self.0.stdin.take().unwrap().write_all(b"\n").unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

pub(crate) struct Recorded {
    pub(crate) root: u32,
    pub(crate) mode: CaptureMode,
    pub(crate) all: Vec<Observation>,
    pub(crate) stats: Stats,
    pub(crate) facts: BTreeMap<String, String>,
    pub(crate) names: BTreeMap<u32, Vec<String>>,
}

/// Runs a program under the recorder, while nobody else records.
pub(crate) fn record(command: &Command, options: &Options, facts: &Path) -> Recorded {
    let turn = turn();
    let gated = Gated::new(command);
    let root = gated.pid();
    let seen = Seen::default();
    let recorder = Recorder::start(root, options, Box::new(seen.clone())).unwrap();
    gated.run();
    let mode = recorder.mode();
    let stats = recorder.finish();
    drop(turn);
    let all = std::mem::take(&mut *seen.0.lock().unwrap());
    let facts = fs::read_to_string(facts).unwrap_or_default();
    let facts = facts.lines().filter_map(|line| line.split_once(' ')).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let names = names_of(&all);
    Recorded { root, mode, all, stats, facts, names }
}

pub(crate) fn record_role(role: &str) -> Recorded {
    let folder = Folder::new();
    let facts = folder.path("facts");
    record(&role_command(&me(), role, &facts), &Options::default(), &facts)
}

/// Function names of each location, innermost first.
fn names_of(all: &[Observation]) -> BTreeMap<u32, Vec<String>> {
    let symbolizer = Symbolizer::new(Box::new(HostFiles));
    let mut mappings: BTreeMap<u32, &Mapping> = BTreeMap::new();
    let mut by_mapping: BTreeMap<u32, Vec<(u32, VirtOffset)>> = BTreeMap::new();
    let mut names = BTreeMap::new();
    for observation in all {
        match observation {
            Observation::Mapping(mapping) => {
                mappings.insert(mapping.id.0, mapping);
            }
            Observation::Location { id, kind: LocationKind::Code { mapping, address } } => {
                by_mapping.entry(mapping.0).or_default().push((id.0, *address));
            }
            Observation::Location { id, kind: LocationKind::Cut { reason } } => {
                names.insert(id.0, vec![format!("[{reason}]")]);
            }
            Observation::Location { id, kind: LocationKind::Unmapped { address } } => {
                names.insert(id.0, vec![format!("[unmapped {address}]")]);
            }
            // The name of a location that was written by address.
            Observation::Named { id, function, runtime, .. } => {
                let mark = if *runtime == Runtime::Kernel { "_[k]" } else { "" };
                names.insert(id.0, vec![format!("{function}{mark}")]);
            }
            _ => {}
        }
    }
    for (mapping, locations) in by_mapping {
        let addresses: Vec<VirtOffset> = locations.iter().map(|(_, address)| *address).collect();
        let resolved = symbolizer.resolve(mappings[&mapping], &addresses);
        for ((id, _), frames) in locations.iter().zip(resolved.frames) {
            names.insert(*id, frames.into_iter().map(|frame| frame.function.into()).collect());
        }
    }
    names
}

impl Recorded {
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter_map(|o| match o {
            Observation::Sample(sample) => Some(sample),
            _ => None,
        })
    }

    pub(crate) fn waits(&self) -> impl Iterator<Item = &Wait> {
        self.all.iter().filter_map(|o| if let Observation::Wait(wait) = o { Some(wait) } else { None })
    }

    pub(crate) fn slices(&self) -> impl Iterator<Item = &CpuSlice> {
        self.all.iter().filter_map(|o| match o {
            Observation::CpuSlice(slice) => Some(slice),
            _ => None,
        })
    }

    pub(crate) fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        for observation in &self.all {
            if let Observation::Loss(loss) = observation {
                loss.clone().merge_into(&mut losses);
            }
        }
        losses
    }

    pub(crate) fn locations(&self, stack: StackId) -> &[LocationId] {
        self.all
            .iter()
            .find_map(|o| match o {
                Observation::Stack { id, locations } if *id == stack => Some(locations.as_slice()),
                _ => None,
            })
            .expect("a stack is defined")
    }

    /// Function names from leaf to root.
    pub(crate) fn functions(&self, sample: &Sample) -> Vec<&str> {
        self.functions_of(sample.stack)
    }

    pub(crate) fn functions_of(&self, stack: StackId) -> Vec<&str> {
        self.locations(stack).iter().flat_map(|id| self.names[&id.0].iter().map(String::as_str)).collect()
    }

    pub(crate) fn is_in(&self, sample: &Sample, function: &str) -> bool {
        self.functions(sample).iter().any(|name| name.rsplit("::").next() == Some(function))
    }

    pub(crate) fn count(&self, function: &str) -> usize {
        self.samples().filter(|s| self.is_in(s, function)).count()
    }

    pub(crate) fn fact(&self, name: &str) -> u64 {
        self.facts[name].parse().unwrap()
    }

    /// Whether the stacks of these samples end at the root; those of the first instants of a process may not.
    pub(crate) fn assert_unwound(&self, function: &str) {
        let inside: Vec<&Sample> = self.samples().filter(|s| self.is_in(s, function)).collect();
        let whole = inside.iter().filter(|s| !self.functions(s).last().unwrap().starts_with('[')).count();
        assert!(inside.len() > 50, "only {} samples in {function}\n{}", inside.len(), self.describe());
        assert!(whole * 100 >= inside.len() * 99, "{whole} of {} stacks are whole\n{}", inside.len(), self.describe());
    }

    pub(crate) fn describe(&self) -> String {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for sample in self.samples() {
            *counts.entry(self.functions(sample).join(" < ")).or_default() += 1;
        }
        let mut text = format!("{:?}\n{:?}\n", self.stats, self.losses());
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (stack, count) in counts.iter().take(12) {
            writeln!(text, "{count:6} {stack}").unwrap();
        }
        text
    }
}

pub(crate) fn within(actual: f64, expected: f64, share: f64) -> bool {
    (actual - expected).abs() <= expected * share
}
