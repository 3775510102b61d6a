//! A discrete-event simulation that shares no code with the product: it knows tasks, work, dependencies and slots, and emits nothing but
//! spans and links.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;

use longpole_analysis::tree::forest::Forest;
use longpole_model::{NodeId, Recording, Span, SpanLink, text};
use longpole_testing::random::Random;

/// Numbers as a simulation needs them.
pub(crate) struct Dice(pub(crate) Random);

impl Dice {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    pub(crate) fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Evenly spread over orders of magnitude, as durations of real operations are; even, so that half of it is whole.
    pub(crate) fn time(&mut self, low: f64, high: f64) -> u64 {
        let unit = (self.0.next() >> 11) as f64 / (1u64 << 53) as f64;
        ((low.ln() + unit * (high.ln() - low.ln())).exp() as u64) & !1
    }
}

pub(crate) const MICROS: f64 = 1e3;
pub(crate) const MILLIS: f64 = 1e6;
pub(crate) const SECS: f64 = 1e9;

/// How a task runs its children.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Way {
    /// Each as soon as its dependencies are done, at most `slots` at once, first come first served.
    Graph { slots: Option<usize> },
    /// One launch after the other, each after a piece of work of the parent; nobody waits for anybody.
    Fan,
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) service: &'static str,
    pub(crate) parent: usize,
    pub(crate) children: Vec<usize>,
    pub(crate) way: Way,
    /// Work of the parent just before this starts.
    pub(crate) gap: u64,
    /// Work after the last child; of a task without children: all its work.
    pub(crate) tail: u64,
    /// Tasks that must be over before it starts.
    pub(crate) deps: Vec<usize>,
    /// Work of its own that runs beside its children: the main thread that computes while its workers do.
    pub(crate) beside: u64,
    /// Its parent does not wait for it.
    pub(crate) detached: bool,
    /// With slots: whether each slot is a span of its own, a worker, and its jobs stand below it.
    pub(crate) workers: bool,
}

/// What is done to the work of a task in a run of the simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scale {
    Whole,
    Half,
    Nothing,
}

impl Scale {
    pub(crate) fn of(self, work: u64) -> u64 {
        match self {
            Scale::Whole => work,
            Scale::Half => work / 2,
            Scale::Nothing => 0,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    End(usize),
    /// The work beside the children is done.
    Beside(usize),
    Start(usize),
}

/// When every task was, and on which slot.
pub(crate) struct Times {
    pub(crate) start: Vec<u64>,
    pub(crate) end: Vec<u64>,
    pub(crate) slot: Vec<Option<usize>>,
}

impl Times {
    pub(crate) fn wall(&self) -> u64 {
        self.end[0]
    }
}

pub(crate) struct Run<'a> {
    tasks: &'a [Task],
    scale: &'a [Scale],
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
    started: Vec<Option<u64>>,
    ended: Vec<Option<u64>>,
    missing_deps: Vec<usize>,
    /// Children that must be over before the end, and one for the work beside them.
    awaited: Vec<usize>,
    followers: Vec<Vec<usize>>,
    queues: HashMap<usize, VecDeque<usize>>,
    free_slots: HashMap<usize, BinaryHeap<Reverse<usize>>>,
    slot: Vec<Option<usize>>,
}

impl<'a> Run<'a> {
    pub(crate) fn simulate(tasks: &'a [Task], scale: &'a [Scale]) -> Times {
        let mut followers = vec![Vec::new(); tasks.len()];
        for (i, task) in tasks.iter().enumerate() {
            for &d in &task.deps {
                followers[d].push(i);
            }
        }
        let mut run = Run {
            tasks,
            scale,
            now: 0,
            events: BinaryHeap::new(),
            count: 0,
            started: vec![None; tasks.len()],
            ended: vec![None; tasks.len()],
            missing_deps: tasks.iter().map(|t| t.deps.len()).collect(),
            awaited: tasks.iter().map(|t| t.children.iter().filter(|&&c| !tasks[c].detached).count() + 1).collect(),
            followers,
            queues: HashMap::new(),
            free_slots: HashMap::new(),
            slot: vec![None; tasks.len()],
        };
        run.after(0, Event::Start(0));
        while let Some(Reverse((time, _, event))) = run.events.pop() {
            run.now = time;
            match event {
                Event::Start(task) => run.start(task),
                Event::End(task) => run.end(task),
                Event::Beside(task) => run.one_less(task),
            }
        }
        let all = |times: Vec<Option<u64>>| times.into_iter().map(|t| t.expect("every task runs")).collect();
        Times { start: all(run.started), end: all(run.ended), slot: run.slot }
    }

    pub(crate) fn after(&mut self, work: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + work, self.count, event)));
    }

    pub(crate) fn start(&mut self, task: usize) {
        self.started[task] = Some(self.now);
        let this = &self.tasks[task];
        self.after(self.scale[task].of(this.beside), Event::Beside(task));
        match this.way {
            Way::Fan => {
                let mut offset = 0;
                for &child in &this.children {
                    if !self.tasks[child].deps.is_empty() {
                        self.launch_if_ready(child);
                        continue;
                    }
                    offset += self.scale[task].of(self.tasks[child].gap);
                    self.after(offset, Event::Start(child));
                }
            }
            Way::Graph { .. } => {
                for &child in &this.children {
                    self.launch_if_ready(child);
                }
            }
        }
    }

    pub(crate) fn launch_if_ready(&mut self, task: usize) {
        let parent = self.tasks[task].parent;
        if self.missing_deps[task] > 0 || self.started[parent].is_none() {
            return;
        }
        match self.tasks[parent].way {
            Way::Graph { slots: Some(_) } => {
                self.queues.entry(parent).or_default().push_back(task);
                self.fill_slots(parent);
            }
            _ => self.after(self.scale[parent].of(self.tasks[task].gap), Event::Start(task)),
        }
    }

    pub(crate) fn fill_slots(&mut self, parent: usize) {
        let Way::Graph { slots: Some(slots) } = self.tasks[parent].way else { return };
        let free = self.free_slots.entry(parent).or_insert_with(|| (0..slots).map(Reverse).collect());
        let queue = self.queues.entry(parent).or_default();
        let mut launched = Vec::new();
        while !free.is_empty()
            && let Some(task) = queue.pop_front()
        {
            self.slot[task] = free.pop().map(|Reverse(slot)| slot);
            launched.push(task);
        }
        for task in launched {
            self.after(self.scale[parent].of(self.tasks[task].gap), Event::Start(task));
        }
    }

    pub(crate) fn end(&mut self, task: usize) {
        self.ended[task] = Some(self.now);
        let parent = self.tasks[task].parent;
        for follower in self.followers[task].clone() {
            self.missing_deps[follower] -= 1;
            self.launch_if_ready(follower);
        }
        if task == 0 {
            return;
        }
        if matches!(self.tasks[parent].way, Way::Graph { slots: Some(_) }) {
            if let Some(slot) = self.slot[task] {
                self.free_slots.entry(parent).or_default().push(Reverse(slot));
            }
            self.fill_slots(parent);
        }
        if !self.tasks[task].detached {
            self.one_less(parent);
        }
    }

    pub(crate) fn one_less(&mut self, task: usize) {
        self.awaited[task] -= 1;
        if self.awaited[task] == 0 {
            self.after(self.scale[task].of(self.tasks[task].tail), Event::End(task));
        }
    }
}

/// The shapes of real runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    /// Resources with dependencies under one parent, as a deployment engine runs them.
    Resources,
    /// One step after the other, with work of the script between them.
    Script,
    /// Launched one by one, not waiting for each other; often with a last step that waits for all.
    FanOut,
    /// Fixed lanes, each one step after the other: shards of a test run.
    Lanes,
    /// A queue of jobs, and a number of workers.
    Pool,
    /// Resources with dependencies, and a number of workers.
    LimitedResources,
}

pub(crate) struct World {
    pub(crate) dice: Dice,
    pub(crate) tasks: Vec<Task>,
    /// Whether shapes may occur whose slots go to whoever comes first.
    pub(crate) dynamic: bool,
    /// Range of the engine's overhead.
    pub(crate) overhead: (f64, f64),
}

pub(crate) const SERVICES: [&str; 4] = ["engine", "aws", "docker", "database"];

impl World {
    pub(crate) fn task(&mut self, parent: usize, name: String) -> usize {
        let service = if name.starts_with("step") { self.tasks[parent].service } else { SERVICES[self.dice.below(4)] };
        let gap = self.dice.time(self.overhead.0, self.overhead.1);
        let tail = self.dice.time(5.0 * MILLIS, 5.0 * SECS);
        self.tasks.push(Task {
            name,
            service,
            parent,
            children: Vec::new(),
            way: Way::Graph { slots: None },
            gap,
            tail,
            deps: Vec::new(),
            beside: 0,
            detached: false,
            workers: false,
        });
        let index = self.tasks.len() - 1;
        if index > 0 {
            self.tasks[parent].children.push(index);
        }
        index
    }

    pub(crate) fn grow(&mut self, task: usize, depth: usize) {
        let shapes: &[Shape] = if self.dynamic {
            &[Shape::Resources, Shape::Script, Shape::Script, Shape::FanOut, Shape::Lanes, Shape::Pool, Shape::LimitedResources]
        } else {
            &[Shape::Resources, Shape::Resources, Shape::Script, Shape::Script, Shape::FanOut, Shape::Lanes]
        };
        let shape = shapes[self.dice.below(shapes.len())];
        let count = match (depth, shape) {
            (_, Shape::Script) => self.dice.between(2, 7),
            (0, _) => self.dice.between(6, 40),
            (1, _) => self.dice.between(3, 12),
            _ => self.dice.between(2, 5),
        };
        self.tasks[task].tail = self.dice.time(50.0 * MICROS, 100.0 * MILLIS);
        let first = self.tasks.len();
        let mut members = Vec::new();
        for i in 0..count {
            let name = match shape {
                Shape::Script => format!("step {i}"),
                Shape::Resources | Shape::LimitedResources => format!("create r{first}-{i}"),
                Shape::FanOut => format!("part {}", i % 5),
                Shape::Lanes => format!("test {i}"),
                Shape::Pool => format!("job {}", i % 3),
            };
            members.push(self.task(task, name));
        }
        match shape {
            Shape::Script => {
                for pair in members.windows(2) {
                    self.tasks[pair[1]].gap = self.dice.time(50.0 * MICROS, 300.0 * MILLIS);
                    self.tasks[pair[1]].deps.push(pair[0]);
                }
            }
            Shape::Resources | Shape::LimitedResources => {
                if shape == Shape::LimitedResources {
                    self.tasks[task].way = Way::Graph { slots: Some(self.dice.between(2, 6)) };
                }
                let roots = self.dice.between(1, 3);
                for i in roots.min(count - 1)..count {
                    if i > roots.min(count - 1) && self.dice.chance(20) {
                        continue;
                    }
                    for _ in 0..self.dice.between(1, 3) {
                        let dep = members[self.dice.below(i)];
                        if !self.tasks[members[i]].deps.contains(&dep) {
                            self.tasks[members[i]].deps.push(dep);
                        }
                    }
                }
            }
            Shape::FanOut => {
                // Half of them launch as fast as they can, half after a random pause: requests that come in, a timer.
                self.tasks[task].way = Way::Fan;
                let most = if self.dynamic && self.dice.chance(50) { 1.0 * SECS } else { 20.0 * MILLIS };
                for &m in &members {
                    self.tasks[m].gap = self.dice.time(50.0 * MICROS, most);
                }
                // And mostly somebody collects what came out, and says so.
                if !self.dynamic || self.dice.chance(50) {
                    let collector = members[count - 1];
                    self.tasks[collector].deps = members[..count - 1].to_vec();
                }
            }
            Shape::Lanes => {
                let lanes = self.dice.between(2, 4).min(count - 1);
                for i in lanes..count {
                    let before = members[i - lanes];
                    self.tasks[members[i]].deps.push(before);
                }
            }
            Shape::Pool => {
                self.tasks[task].way = Way::Graph { slots: Some(self.dice.between(2, 6)) };
                self.tasks[task].workers = self.dice.chance(40);
            }
        }
        if self.dynamic {
            // Habits that no link tells of: a parent that works while its children do, and children nobody waits for.
            if self.dice.chance(8) {
                self.tasks[task].beside = self.dice.time(5.0 * MILLIS, 5.0 * SECS);
            }
            for &m in &members {
                self.tasks[m].detached = self.dice.chance(2);
            }
        }
        for m in members {
            if depth < 3 && self.dice.chance([60, 45, 25][depth]) {
                self.grow(m, depth + 1);
            }
        }
    }

    /// A dependency across parents: a later piece of the top level waits, somewhere inside, for something inside an
    /// earlier one. Top-level dependencies run from later to earlier too, so nothing waits in a circle.
    pub(crate) fn cross(&mut self) {
        let top = self.tasks[0].children.clone();
        if top.len() < 2 || matches!(self.tasks[0].way, Way::Graph { slots: Some(_) }) {
            return;
        }
        for _ in 0..self.dice.between(1, 3) {
            let later = self.dice.between(1, top.len() - 1);
            let earlier = self.dice.below(later);
            let (from, to) = (self.inside(top[later]), self.inside(top[earlier]));
            let free = self.tasks[self.tasks[from].parent].way == Way::Graph { slots: None };
            if free && !self.tasks[from].deps.contains(&to) && from != to {
                self.tasks[from].deps.push(to);
            }
        }
    }

    pub(crate) fn inside(&mut self, mut task: usize) -> usize {
        while !self.tasks[task].children.is_empty() && self.dice.chance(60) {
            let children = &self.tasks[task].children;
            task = children[(self.dice.0.0 as usize) % children.len()];
            self.dice.0.next();
        }
        task
    }

    pub(crate) fn new(seed: u64, dynamic: bool) -> World {
        let mut dice = Dice(Random(seed));
        let overhead = [(20.0 * MICROS, 2.0 * MILLIS), (20.0 * MICROS, 2.0 * MILLIS), (500.0 * MICROS, 40.0 * MILLIS)][dice.below(3)];
        let mut world = World { dice, tasks: Vec::new(), dynamic, overhead };
        world.task(0, "run".to_owned());
        world.grow(0, 0);
        if world.dice.chance(15) {
            world.cross();
        }
        world
    }
}

/// The spans a tracer would have sent; the run itself is no span.
pub(crate) fn record(tasks: &[Task], times: &Times, links: bool) -> Recording {
    let mut recording = text::parse(&format!("run deploy 0..{}ns", times.wall())).expect("the notation");
    let template = text::parse("x 0..1ns").expect("the notation").spans.remove(0);
    let mut resources = HashMap::new();
    let worker_id = |pool: usize, slot: usize| text::span_id(1_000_000 + 1_000 * pool as u64 + slot as u64);
    for (pool, task) in tasks.iter().enumerate().filter(|(_, t)| t.workers) {
        let slots = task.children.iter().filter_map(|&c| times.slot[c]).max().map_or(0, |s| s + 1);
        for slot in 0..slots {
            let mine = task.children.iter().filter(|&&c| times.slot[c] == Some(slot));
            let end = mine.map(|&c| times.end[c]).max().unwrap_or(times.start[pool]);
            recording.spans.push(Span {
                span_id: worker_id(pool, slot),
                parent_span_id: Some(text::span_id(pool as u64)),
                name: "worker".into(),
                start: text::ORIGIN.plus_nanos(times.start[pool] as i64),
                end: text::ORIGIN.plus_nanos(end as i64),
                ..template.clone()
            });
        }
    }
    for (i, task) in tasks.iter().enumerate().skip(1) {
        let resource = resources.entry(task.service).or_insert_with(|| {
            let spelled = format!("x 0..1ns {}", task.service);
            Arc::clone(&text::parse(&spelled).expect("the notation").spans[0].resource)
        });
        let link = |d: &usize| SpanLink {
            trace_id: text::trace_id(1),
            span_id: text::span_id(*d as u64),
            attributes: longpole_model::Attributes::default(),
        };
        recording.spans.push(Span {
            span_id: text::span_id(i as u64),
            parent_span_id: Some(match times.slot[i].filter(|_| tasks[task.parent].workers) {
                Some(slot) => worker_id(task.parent, slot),
                None => text::span_id(task.parent as u64),
            }),
            name: task.name.as_str().into(),
            start: text::ORIGIN.plus_nanos(times.start[i] as i64),
            end: text::ORIGIN.plus_nanos(times.end[i] as i64),
            links: if links { task.deps.iter().map(link).collect() } else { Default::default() },
            resource: Arc::clone(resource),
            ..template.clone()
        });
    }
    recording
}

pub(crate) fn whole(tasks: &[Task]) -> Vec<Scale> {
    vec![Scale::Whole; tasks.len()]
}

/// These tasks and all below them.
pub(crate) fn scaled(tasks: &[Task], chosen: &[usize], scale: Scale) -> Vec<Scale> {
    let mut out = whole(tasks);
    for i in 0..tasks.len() {
        // Children come after their parents.
        if chosen.contains(&i) || (i > 0 && out[tasks[i].parent] == scale) {
            out[i] = scale;
        }
    }
    out
}

/// What the run saves in truth.
pub(crate) fn truth(tasks: &[Task], wall: u64, scale: &[Scale]) -> i64 {
    wall as i64 - Run::simulate(tasks, scale).wall() as i64
}

pub(crate) fn task_of_node(recording: &Recording, forest: &Forest, node: NodeId) -> usize {
    forest.span(recording, node).map_or(0, |s| u64::from_be_bytes(s.span_id.bytes()) as usize)
}

/// Whether links say all there is to say. Under a parent without any, no child starts after another ended. Under others, a
/// child without links does not start after a moment of rest: it would be taken for a phase of its own.
pub(crate) fn says_all(tasks: &[Task], times: &Times) -> bool {
    tasks.iter().all(|t| {
        let declared = t.children.iter().any(|&c| !tasks[c].deps.is_empty());
        let first_end = t.children.iter().map(|&c| times.end[c]).min().unwrap_or(u64::MAX);
        let mut order = t.children.clone();
        order.sort_by_key(|&c| times.start[c]);
        let (mut busy_until, mut rested) = (u64::MAX, false);
        order.iter().all(|&c| {
            rested |= times.start[c] >= busy_until;
            busy_until = if busy_until == u64::MAX { times.end[c] } else { busy_until.max(times.end[c]) };
            if declared { !rested || !tasks[c].deps.is_empty() } else { times.start[c] < first_end }
        })
    })
}
