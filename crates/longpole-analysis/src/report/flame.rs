//! Flame graphs of nodes, and of the whole run.

use crate::code::call_tree::CallTree;
use crate::code::waited_rows::WaitedRows;
use crate::link::samples::LinkCounts;
use crate::report::{Excerpt, Report};
use crate::schedule::poles::Pole;
use longpole_model::{NodeId, SampleId, WaitId};

/// Below this number of samples a flame graph says that they are few.
pub const FEW_SAMPLES: u64 = 20;

/// A flame graph and what it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// The tree.
    pub tree: CallTree,
    /// Which part of its rows is waits.
    pub waited: WaitedRows,
    /// How its samples are tied to their spans.
    pub links: LinkCounts,
    /// Which time it shows.
    pub time: FlameTime,
    /// Waits with a stack that are left out of the whole run's: those of threads that work for no span, idle workers among them.
    pub left_out_waits: u64,
}

/// Which time a flame graph shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlameTime {
    /// On a CPU, by samples.
    #[default]
    OnCpu,
    /// Blocked, by the sampled waits: lengths are exact.
    OffCpu,
    /// Both.
    Wall,
}

impl FlameTime {
    /// The word JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            FlameTime::OnCpu => "on_cpu",
            FlameTime::OffCpu => "off_cpu",
            FlameTime::Wall => "wall",
        }
    }

    /// The time of this word.
    pub fn from_word(word: &str) -> Option<Self> {
        [FlameTime::OnCpu, FlameTime::OffCpu, FlameTime::Wall].into_iter().find(|time| time.as_str() == word)
    }
}

impl Flame {
    /// Whether there are too few samples to read much into it.
    pub fn few_samples(&self) -> bool {
        self.time != FlameTime::OffCpu && self.tree.samples < FEW_SAMPLES
    }
}

impl Report {
    /// The flame graph of the whole run, with the waits of all threads, whatever they wait for.
    pub fn flame_of_all_threads(&self, time: FlameTime, excerpt: Excerpt) -> Flame {
        self.flame_with(time, excerpt, || self.all_samples().collect(), || self.all_waits().collect()).0
    }

    /// The flame graph of these nodes and everything below them; without nodes, of the whole run. Nodes do not stand below each
    /// other. Waits count where the recorder sampled their stack; workers that wait for work are left out.
    pub fn flame(&self, roots: Option<&[NodeId]>, time: FlameTime, excerpt: Excerpt) -> Flame {
        let (flame, waits) = self.flame_with(time, excerpt, || self.samples_below(roots), || self.waits_below(roots));
        if roots.is_some() || time == FlameTime::OnCpu {
            return flame;
        }
        Flame { left_out_waits: self.sampled_waits_within(excerpt).saturating_sub(waits) as u64, ..flame }
    }

    /// The flame graph of a pole that is a part of operations, while it was on the path.
    pub fn flame_of_part(&self, pole: &Pole, time: FlameTime, excerpt: Excerpt) -> Flame {
        self.flame_with(time, excerpt, || self.samples_of_part(pole), || self.waits_of_part(pole)).0
    }

    /// A flame graph, and how many of its waits have a stack.
    fn flame_with(
        &self,
        time: FlameTime,
        excerpt: Excerpt,
        samples: impl FnOnce() -> Vec<SampleId>,
        waits: impl FnOnce() -> Vec<WaitId>,
    ) -> (Flame, usize) {
        let samples = if time == FlameTime::OffCpu { Vec::new() } else { self.samples_within(excerpt, samples()) };
        let waits = if time == FlameTime::OnCpu { Vec::new() } else { self.waits_within(excerpt, waits()) };
        let stacks = self.stacks(samples.iter().copied()).chain(self.stacks_of_waits(&waits));
        let tree = CallTree::new(&self.recording, &self.functions, stacks);
        let flame = Flame {
            waited: WaitedRows::new(&self.recording, &self.functions, &tree, self.kinds_of_waits(&waits)),
            tree,
            links: self.link_counts(samples.iter().copied()),
            time,
            left_out_waits: 0,
        };
        (flame, self.count_sampled(&waits))
    }
}
