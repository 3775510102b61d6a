//! One piece of work in several traces: a part of the tree begins a trace of its own, and nothing but time says where it belongs.

use std::collections::{HashMap, HashSet};

use longpole_analysis::schedule::critical_path::CriticalPath;
use longpole_analysis::schedule::replay::Replay;
use longpole_analysis::schedule::saving::Change;
use longpole_analysis::tree::forest::Forest;
use longpole_model::{Nanos, NodeId, Recording, text};

use crate::simulation::{Run, Scale, Task, Times, World, record, says_all, scaled, task_of_node, truth, whole};

/// Two clocks may be as far apart.
const SLACK_NANOS: u64 = 1_000_000;

/// Graphs that are tried.
const GRAPHS: usize = 1000;

/// The recording in which this task and all below it are a trace of their own, whose root names no parent.
fn apart(recording: &Recording, tasks: &[Task], root: usize) -> Recording {
    let mut below: HashSet<usize> = HashSet::from([root]);
    // Children come after their parents.
    for (number, task) in tasks.iter().enumerate().skip(root + 1) {
        if below.contains(&task.parent) {
            below.insert(number);
        }
    }
    let number = |id: longpole_model::SpanId| u64::from_be_bytes(id.bytes()) as usize;
    let trace_of = |task: usize| text::trace_id(if below.contains(&task) { 2 } else { 1 });
    let mut out = recording.clone();
    for span in &mut out.spans {
        let task = number(span.span_id);
        span.trace_id = trace_of(task);
        if task == root {
            span.parent_span_id = None;
        }
        for link in &mut span.links {
            link.trace_id = trace_of(number(link.span_id));
        }
    }
    out
}

/// Whether time leaves no choice where a task belongs: on each level down to its parent exactly one span covers it, below its parent not one
/// alone, and its name and that of the outermost one never cross.
fn is_clear(tasks: &[Task], times: &Times, root: usize) -> bool {
    let (start, end) = (times.start[root], times.end[root]);
    let until = end - SLACK_NANOS.min((end - start) / 100);
    // Those that started first; of several at one moment the longer one is outside.
    let covers = |task: usize| {
        let is_before = times.start[task] < start || (times.start[task] == start && times.end[task] > end);
        task != root && is_before && times.end[task] >= until
    };
    let mut chain = vec![tasks[root].parent];
    while *chain.last().unwrap_or(&0) != 0 {
        chain.push(tasks[chain[chain.len() - 1]].parent);
    }
    chain.reverse();
    let only = |parent: usize, child: Option<usize>| {
        let mut covering = tasks[parent].children.iter().copied().filter(|&task| covers(task));
        match (covering.next(), covering.next()) {
            (Some(one), None) => child == Some(one),
            (None, None) => child.is_none(),
            _ => child.is_none(),
        }
    };
    let is_reached = chain.windows(2).all(|pair| only(pair[0], Some(pair[1]))) && only(chain[chain.len() - 1], None);
    let operation = |task: usize| (tasks[task].service, tasks[task].name.as_str());
    let crosses = |a: usize, b: usize| {
        let (first, second) = if times.start[a] <= times.start[b] { (a, b) } else { (b, a) };
        times.end[first] > times.start[second] + SLACK_NANOS && times.end[first] + SLACK_NANOS < times.end[second]
    };
    let outermost: Vec<usize> = tasks[0].children.iter().copied().chain([root]).collect();
    let of = |task: usize| outermost.iter().copied().filter(move |&other| operation(other) == operation(task));
    let Some(&top) = chain.get(1) else { return is_reached };
    is_reached && operation(top) != operation(root) && !of(top).any(|a| of(root).any(|b| crosses(a, b)))
}

/// The sum of the path, and what some tasks save.
fn answer(recording: &Recording, asked: &[usize]) -> (Vec<NodeId>, Nanos, Vec<(usize, Nanos, Nanos)>) {
    let forest = Forest::build(recording);
    let replay = Replay::new(recording, &forest);
    let path = CriticalPath::new(recording, &forest);
    let node_of: HashMap<usize, NodeId> = forest.ids().map(|node| (task_of_node(recording, &forest, node), node)).collect();
    let saves = |&task: &usize| {
        let saving = replay.saves(&[node_of[&task]], Change::Zero);
        (task, saving.low, saving.high)
    };
    let parents = forest.nodes.iter().map(|node| node.parent.unwrap_or(NodeId::RUN)).collect();
    (parents, path.on_path.iter().copied().sum(), asked.iter().map(saves).collect())
}

#[test]
fn a_part_in_a_trace_of_its_own_changes_no_answer() {
    let (mut graphs, mut parts, mut seed) = (0, 0, 0u64);
    while graphs < GRAPHS {
        seed += 1;
        let mut world = World::new(seed, false);
        let times = Run::simulate(&world.tasks, &whole(&world.tasks));
        let tasks = std::mem::take(&mut world.tasks);
        let clear: Vec<usize> = (1..tasks.len()).filter(|&task| tasks[task].parent != 0 && is_clear(&tasks, &times, task)).collect();
        if clear.is_empty() || !says_all(&tasks, &times) {
            continue;
        }
        graphs += 1;
        let root = clear[world.dice.below(clear.len())];
        let asked: Vec<usize> =
            [root, tasks[root].parent].into_iter().chain((0..3).map(|_| world.dice.between(1, tasks.len() - 1))).collect();
        let recording = record(&tasks, &times, true);
        let (one, several) = (answer(&recording, &asked), answer(&apart(&recording, &tasks, root), &asked));
        assert_eq!(one, several, "seed {seed}: task {root} apart");
        assert_eq!(several.1, Nanos(times.wall() as i64), "seed {seed}: the path has a gap");
        for (task, low, high) in several.2 {
            let expected = Nanos(truth(&tasks, times.wall(), &scaled(&tasks, &[task], Scale::Nothing)));
            assert_eq!((low, high), (expected, expected), "seed {seed}: task {task}");
            assert!(high <= Nanos(times.wall() as i64));
        }
        parts += 1;
    }
    println!("{graphs} graphs of {seed} with a part that time places, {parts} parts apart, all answers equal");
}
