//! Random programs, and how long each takes by construction, with all of its functions and without one.

use longpole_testing::random::Random;

/// How long the main thread of [`Step::Held`] waits before it takes the lock, so that the other thread has it.
pub(super) const HEAD_START_MILLIS: u64 = 5;

const VERBS: [&str; 12] =
    ["parse", "render", "encode", "fetch", "index", "verify", "compress", "resolve", "collect", "merge", "scan", "publish"];
const NOUNS: [&str; 12] =
    ["rules", "pages", "orders", "users", "blocks", "graph", "images", "routes", "tables", "tokens", "files", "totals"];

/// A function that computes or sleeps for a fixed time.
#[derive(Debug, Clone)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) computes: bool,
    /// Milliseconds of a call: CPU time, or time asleep.
    pub(super) millis: u64,
}

/// What the main thread does next. Numbers are places in [`Plan::functions`].
#[derive(Debug, Clone)]
pub(super) enum Step {
    Call(usize),
    /// Each thread calls its functions one after the other; the main thread joins all.
    Threads(Vec<Vec<usize>>),
    /// The same with processes, all at once or one after the other.
    Children {
        lanes: Vec<Vec<usize>>,
        at_once: bool,
    },
    /// Each thread calls the function while it holds the one lock.
    Serialised {
        threads: usize,
        function: usize,
    },
    /// A thread calls the first function while it holds the lock that the main thread needs for the second.
    Held {
        holder: usize,
        waiter: usize,
    },
    /// A thread, or a child process behind a pipe, makes each item with the first function; the main thread consumes it with the second.
    Items {
        of_child: bool,
        items: usize,
        capacity: Option<usize>,
        produce: usize,
        consume: usize,
    },
}

/// A thread beside the others that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noise {
    None,
    /// It computes all the time.
    Burns,
    /// It wakes up every few milliseconds.
    Polls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Python,
}

/// A program.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) language: Language,
    pub(super) functions: Vec<Function>,
    pub(super) steps: Vec<Step>,
    pub(super) noise: Noise,
}

impl Plan {
    /// The program of this seed. At most two threads of a program compute at once: more would share the CPUs of a small machine.
    pub(super) fn random(seed: u64) -> Plan {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let language = if random.below(2) == 0 { Language::C } else { Language::Python };
        let noise = match random.below(8) {
            0 if language == Language::C => Noise::Burns,
            0 | 1 => Noise::Polls,
            _ => Noise::None,
        };
        // Python computes in one thread at a time.
        let computing_max = if language == Language::Python || noise == Noise::Burns { 1 } else { 2 };
        let mut plan = Plan { language, functions: Vec::new(), steps: Vec::new(), noise };
        for _ in 0..2 + random.below(3) {
            let step = plan.random_step(&mut random, computing_max);
            plan.steps.push(step);
        }
        plan
    }

    fn random_step(&mut self, random: &mut Random, computing_max: usize) -> Step {
        match random.below(10) {
            0..=2 => Step::Call(if self.functions.is_empty() || random.below(4) > 0 {
                self.function(random, 400, true)
            } else {
                random.below(self.functions.len())
            }),
            3 | 4 => Step::Threads(self.lanes(random, computing_max)),
            5 => {
                let at_once = random.below(3) > 0;
                let computing_max = if self.noise == Noise::Burns { 1 } else { 2 };
                Step::Children { lanes: self.lanes(random, computing_max), at_once }
            }
            6 => {
                let function = self.function(random, 100, true);
                Step::Serialised { threads: 2 + random.below(3), function }
            }
            7 => Step::Held { holder: self.function(random, 400, true), waiter: self.function(random, 200, true) },
            kind => {
                let of_child = kind == 8;
                let produce = self.function(random, 20, true);
                // In one process of Python, both would share the interpreter.
                let may_compute = of_child && self.noise != Noise::Burns || !self.functions[produce].computes || computing_max > 1;
                let consume = self.function(random, 20, may_compute);
                let capacity = (!of_child && random.below(2) == 0).then(|| 1 + random.below(3));
                Step::Items { of_child, items: 8 + random.below(16), capacity, produce, consume }
            }
        }
    }

    fn lanes(&mut self, random: &mut Random, computing_max: usize) -> Vec<Vec<usize>> {
        let mut computing = 0;
        let lanes = 2 + random.below(2);
        (0..lanes)
            .map(|_| {
                let may_compute = computing < computing_max;
                let lane: Vec<usize> = (0..1 + random.below(2)).map(|_| self.function(random, 300, may_compute)).collect();
                computing += usize::from(lane.iter().any(|&function| self.functions[function].computes));
                lane
            })
            .collect()
    }

    /// A new function that takes up to `millis_max`.
    fn function(&mut self, random: &mut Random, millis_max: usize, may_compute: bool) -> usize {
        let at = self.functions.len();
        let (first, noun) = (random.below(VERBS.len()), NOUNS[at % NOUNS.len()]);
        let names = VERBS.iter().cycle().skip(first).map(|verb| format!("{verb}_{noun}"));
        let is_new = |name: &String| !self.functions.iter().any(|other| other.name == *name);
        // No program has a function for each verb and noun.
        let name = names.take(VERBS.len()).find(is_new).unwrap_or_default();
        let millis = (millis_max / 10 + random.below(millis_max * 9 / 10)) as u64;
        self.functions.push(Function { name, computes: may_compute && random.below(5) < 3, millis });
        at
    }

    /// How long the program takes, in milliseconds, if one function takes no time.
    pub(super) fn millis_without(&self, without: Option<usize>) -> u64 {
        let of = |function: usize| if without == Some(function) { 0 } else { self.functions[function].millis };
        let lane = |lane: &Vec<usize>| lane.iter().map(|&function| of(function)).sum::<u64>();
        let step = |step: &Step| match step {
            Step::Call(function) => of(*function),
            Step::Threads(lanes) | Step::Children { lanes, at_once: true } => lanes.iter().map(lane).max().unwrap_or(0),
            Step::Children { lanes, at_once: false } => lanes.iter().map(lane).sum(),
            Step::Serialised { threads, function } => *threads as u64 * of(*function),
            Step::Held { holder, waiter } => of(*holder).max(HEAD_START_MILLIS) + of(*waiter),
            Step::Items { items, capacity, produce, consume, .. } => of_items(*items, *capacity, of(*produce), of(*consume)),
        };
        self.steps.iter().map(step).sum()
    }

    /// How much earlier the program ends without a function, in milliseconds.
    pub(super) fn gain_millis(&self, function: usize) -> u64 {
        self.millis_without(None) - self.millis_without(Some(function))
    }
}

/// How long it takes to produce and consume these items, where at most `capacity` wait.
fn of_items(items: usize, capacity: Option<usize>, produce: u64, consume: u64) -> u64 {
    // When the consumer took each item, and when it was ready for the next.
    let mut taken: Vec<u64> = Vec::with_capacity(items);
    let (mut produced, mut consumed) = (0, 0);
    for item in 0..items {
        produced += produce;
        // The item goes in when one of those before it was taken.
        if let Some(room) = capacity.and_then(|capacity| item.checked_sub(capacity)) {
            produced = produced.max(taken[room]);
        }
        let take = produced.max(consumed);
        taken.push(take);
        consumed = take + consume;
    }
    consumed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slower_end_of_a_queue_decides() {
        assert_eq!(of_items(10, None, 10, 3), 103);
        assert_eq!(of_items(10, Some(1), 3, 10), 103);
        assert_eq!(of_items(10, None, 0, 10), 100);
    }

    #[test]
    fn what_stands_beside_a_longer_thread_saves_nothing() {
        let function = |millis| Function { name: format!("f{millis}"), computes: false, millis };
        let plan = Plan {
            language: Language::C,
            functions: vec![function(100), function(300), function(50)],
            steps: vec![Step::Threads(vec![vec![0], vec![1]]), Step::Call(2)],
            noise: Noise::None,
        };
        assert_eq!([0, 1, 2].map(|function| plan.gain_millis(function)), [0, 200, 50]);
    }
}
