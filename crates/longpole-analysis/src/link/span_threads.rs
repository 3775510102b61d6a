//! Spans → threads: on which threads of its process can a span be, as far as its SDK says?
//!
//! A span's `thread.id` is mostly a number of the language's own, and the kernel keeps 15 bytes of a name. So each language has its
//! translation; where there is none, a span can be on any thread.
//!
//! | language | says | threads |
//! |---|---|---|
//! | Java | `thread.name` | those of that name, cut as the JVM cuts it; of `main`, which has the program's name, those but the first |
//! | Python | `thread.id` | those that the interpreter calls so; the one of that id where it is the kernel's; the first of `MainThread`; the others of other names |
//! | Rust | `thread.name` | those of that name, and the workers of tokio: a task begins anywhere |
//! | Rust, longpole-sdk | `thread.id`, the kernel's | that one, and the workers of tokio |
//! | Node | nothing | the first: JavaScript runs there |
//! | others | `thread.id` | the one of that id where it is the kernel's; Go says nothing |
//!
//! A thread that some spans name can have those spans alone, and spans that can be anywhere; a thread that no span
//! names has the latter only. A span that says nothing of its thread is on the one that was on a CPU at both of its ends ([`ThreadsAtEnds`]), if
//! that is one; but other threads without spans of their own may work for it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longpole_model::{AttributeValue, IdVec, Recording, Span, SpanRow, Thread, ThreadKey, ids};

use crate::link::threads_at_ends::ThreadsAtEnds;

/// Bytes that the kernel keeps of a thread's name.
const COMM_BYTES: usize = 15;

/// What tokio calls its workers, older and newer.
const TOKIO_WORKERS: [&str; 2] = ["tokio-runtime-w", "tokio-rt-worker"];

/// Candidates of all sets of a process together, spans times groups of threads. More take seconds; then nothing is known of threads.
const CANDIDATES_MAX: usize = 20_000_000;

/// Threads that are compared with what spans say, together. More take seconds; then the spans that are left can be on any thread.
const COMPARED_MAX: usize = 20_000_000;

/// The threads of a process.
#[derive(Debug, Default)]
struct ProcessThreads<'a> {
    all: Vec<&'a Thread>,
    tids: HashSet<u32>,
    /// What the interpreter calls them.
    by_ident: HashMap<u64, Vec<u32>>,
}

impl<'a> ProcessThreads<'a> {
    fn push(&mut self, thread: &'a Thread) {
        self.all.push(thread);
        self.tids.insert(thread.tid);
        if let Some(ident) = thread.ident {
            self.by_ident.entry(ident).or_default().push(thread.tid);
        }
    }

    /// This thread, if the process has it.
    fn only(&self, tid: u32) -> Vec<u32> {
        self.tids.get(&tid).copied().into_iter().collect()
    }
}

/// What a span says of its thread, and who says so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ThreadClaim<'a> {
    /// Address of the resource: spans share them.
    resource: usize,
    pid: u32,
    id: Option<i64>,
    name: Option<&'a str>,
}

/// Threads of a process that the same spans can be on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// For each span of the query.
    pub(crate) can_be_there: IdVec<Member, bool>,
    /// Its threads; `None` for all that no span names.
    pub(crate) tids: Option<HashSet<u32>>,
}

ids! {
    /// Threads that a span can be on.
    struct SetId;
    /// A span of a process, by its place in a query.
    pub(crate) struct Member;
}

/// Threads that a span can be on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ThreadSet {
    /// Ascending.
    tids: Vec<u32>,
    /// Nobody names them: another thread may work for the span as well.
    is_inferred: bool,
}

/// The threads of each span.
#[derive(Debug, Default)]
pub(crate) struct SpanThreads {
    /// The set of each span; `None` where it can be on any thread.
    of_span: IdVec<SpanRow, Option<SetId>>,
    sets: IdVec<SetId, ThreadSet>,
    /// Threads that are the only ones a span can be on.
    alone: HashSet<ThreadKey>,
}

impl SpanThreads {
    pub(crate) fn of(recording: &Recording) -> SpanThreads {
        let mut threads: HashMap<u32, ProcessThreads<'_>> = HashMap::new();
        let mut compared = 0;
        for thread in &recording.threads {
            threads.entry(thread.pid).or_default().push(thread);
        }
        let mut out = SpanThreads::default();
        if threads.is_empty() {
            return out;
        }
        let mut known: HashMap<ThreadClaim<'_>, Option<SetId>> = HashMap::new();
        let mut set_of: HashMap<ThreadSet, SetId> = HashMap::new();
        let at_ends = ThreadsAtEnds::of(recording);
        let mut alone = HashSet::new();
        out.of_span = IdVec::with_capacity(recording.spans.len());
        for span in &recording.spans {
            let threads_of = |pid| Some((pid, threads.get(&pid)?));
            let Some((pid, threads)) = span.pid.and_then(threads_of) else {
                out.of_span.push(None);
                continue;
            };
            let id = span.attributes.get("thread.id").and_then(AttributeValue::as_int);
            let name = span.attributes.get_str("thread.name");
            let claim = ThreadClaim { resource: Arc::as_ptr(&span.resource) as usize, pid, id, name };
            // Many claims can have the same threads.
            let mut set_of = |tids: Vec<u32>, is_inferred: bool| {
                if let [tid] = tids[..] {
                    alone.insert(ThreadKey::new(pid, tid));
                }
                *set_of.entry(ThreadSet { tids, is_inferred }).or_insert_with_key(|set| out.sets.push(set.clone()))
            };
            let said = *known.entry(claim).or_insert_with(|| {
                let tids = translate(span, (pid, id, name), threads, &mut compared).filter(|tids| !tids.is_empty());
                tids.map(|tids| set_of(tids, false))
            });
            out.of_span.push(said.or_else(|| at_ends.thread(span).map(|tid| set_of(vec![tid], true))));
        }
        out.alone = alone;
        out
    }

    /// Whether some span can be on this thread alone.
    pub(crate) fn is_alone(&self, thread: ThreadKey) -> bool {
        self.alone.contains(&thread)
    }

    /// The threads of a process in groups, by the spans that can be on them. `spans` are all of the process.
    pub(crate) fn groups(&self, spans: &[SpanRow]) -> Vec<Group> {
        let set_of = |span: SpanRow| self.of_span.get(span).copied().flatten();
        let everything = || vec![Group { can_be_there: IdVec::filled(true, spans.len()), tids: None }];
        let used: HashSet<SetId> = spans.iter().filter_map(|&span| set_of(span)).collect();
        let mut sets_of: HashMap<u32, Vec<SetId>> = HashMap::new();
        for &set in &used {
            for &tid in &self.sets[set].tids {
                sets_of.entry(tid).or_default().push(set);
            }
        }
        let mut tids_of: HashMap<Vec<SetId>, HashSet<u32>> = HashMap::new();
        for (tid, mut sets) in sets_of {
            sets.sort_unstable();
            tids_of.entry(sets).or_default().insert(tid);
        }
        if tids_of.is_empty() || tids_of.len().saturating_mul(spans.len()) > CANDIDATES_MAX {
            return everything();
        }
        let mut is_of_group: IdVec<SetId, bool> = IdVec::filled(false, self.sets.len());
        let mut group = |sets: &[SetId], tids: Option<HashSet<u32>>| {
            sets.iter().for_each(|&set| is_of_group[set] = true);
            let may_work = |set: SetId| is_of_group[set] || (tids.is_none() && self.sets[set].is_inferred);
            let can_be_there = spans.iter().map(|&span| set_of(span).is_none_or(may_work)).collect();
            sets.iter().for_each(|&set| is_of_group[set] = false);
            Group { can_be_there, tids }
        };
        let mut groups: Vec<Group> = tids_of.into_iter().map(|(sets, tids)| group(&sets, Some(tids))).collect();
        groups.push(group(&[], None));
        groups
    }
}

/// The threads that a span can be on, ascending; `None` where the span does not say it, or not understood.
fn translate(
    span: &Span,
    (pid, id, name): (u32, Option<i64>, Option<&str>),
    threads: &ProcessThreads<'_>,
    compared: &mut usize,
) -> Option<Vec<u32>> {
    let mut those = |is: &dyn Fn(u32, &str) -> bool| {
        *compared += threads.all.len();
        let mut tids: Vec<u32> = threads.all.iter().filter(|it| is(it.tid, &it.name)).map(|it| it.tid).collect();
        tids.sort_unstable();
        tids.dedup();
        (*compared <= COMPARED_MAX).then_some(tids)
    };
    let first = || threads.only(pid);
    let kernels = || id.and_then(|id| u32::try_from(id).ok()).map(|id| threads.only(id));
    let of_resource = |key| span.resource.attributes.get_str(key).unwrap_or_default();
    match (of_resource("telemetry.sdk.language"), name) {
        ("nodejs", _) => Some(first()),
        ("java", Some("main")) => {
            // The first thread only starts the one that is called so, and has the program's name as that one has.
            let program = threads.all.iter().find(|it| it.tid == pid).map(|it| it.name.as_str())?;
            those(&|tid, comm| tid != pid && (comm == program || comm == "main"))
        }
        ("java", Some(name)) => those(&|_, comm| is_cut_of(name, comm)),
        ("python", name) => {
            // A later thread may be called as an earlier one was; only one of them lives while the span is open.
            let mut called = id.and_then(|id| threads.by_ident.get(&id.cast_unsigned())).cloned().unwrap_or_default();
            called.sort_unstable();
            called.dedup();
            let known = [called].into_iter().chain(kernels()).find(|tids| !tids.is_empty());
            match (known, name) {
                (Some(tids), _) => Some(tids),
                (None, Some("MainThread")) => Some(first()),
                (None, Some(_)) => those(&|tid, _| tid != pid),
                (None, None) => None,
            }
        }
        ("rust", name) => {
            let begun = match name {
                _ if of_resource("telemetry.sdk.name") == "longpole" => kernels()?,
                Some("main") => first(),
                Some(name) => those(&|_, comm| is_cut_of(name, comm))?,
                None => return None,
            };
            if begun.is_empty() {
                return None;
            }
            those(&|tid, comm| begun.binary_search(&tid).is_ok() || TOKIO_WORKERS.contains(&comm))
        }
        // These number their threads themselves, and a small number may be another thread's by chance.
        ("java" | "go" | "dotnet" | "ruby" | "php" | "webjs", _) => None,
        _ => kernels(),
    }
}

/// Whether the kernel's name is what becomes of a thread's: its first 15 bytes, or, as newer JVMs cut it, 7 and the last 6 with two
/// dots between.
fn is_cut_of(name: &str, comm: &str) -> bool {
    if name.len() <= COMM_BYTES {
        return name == comm;
    }
    // A character that does not fit whole leaves nothing readable.
    let (whole, is_cut_inside) = (comm.trim_end_matches(char::REPLACEMENT_CHARACTER), !name.is_char_boundary(COMM_BYTES));
    let is_beginning = name.starts_with(whole) && (whole.len() == COMM_BYTES || (is_cut_inside && whole.len() + 4 > COMM_BYTES));
    let (name, comm) = (name.as_bytes(), comm.as_bytes());
    let without_middle = || comm.len() == COMM_BYTES && comm[..7] == name[..7] && comm[7..9] == *b".." && name.ends_with(&comm[9..]);
    is_beginning || without_middle()
}

#[cfg(test)]
mod tests {
    use super::*;
    use longpole_model::{Id, Monotonic, Resource, Thread, text};

    /// Threads 7 (the first), 8 and 9 of process 7, by their names.
    fn threads(names: [&str; 3]) -> Vec<Thread> {
        let thread = |(i, name): (usize, &&str)| Thread {
            pid: 7,
            tid: 7 + i as u32,
            name: (*name).to_owned(),
            start: Monotonic(0),
            end: None,
            totals: None,
            ident: Some(140_007 + i as u64),
        };
        names.iter().enumerate().map(thread).collect()
    }

    /// The threads of a span with these attributes, of an SDK in this language.
    #[track_caller]
    fn check(language: &str, names: [&str; 3], said: &str, expected: Option<&[u32]>) {
        let mut recording = text::parse(&format!("a 0..9ms web pid 7 {said}\n")).unwrap();
        recording.threads = threads(names);
        let mut resource = Resource::default();
        let (language, sdk) = language.split_once('/').unwrap_or((language, "opentelemetry"));
        resource.attributes.push("telemetry.sdk.language", AttributeValue::Str(language.into()));
        resource.attributes.push("telemetry.sdk.name", AttributeValue::Str(sdk.into()));
        recording.spans[0].resource = Arc::new(resource);
        let found = SpanThreads::of(&recording);
        let set = found.of_span[SpanRow::at(0)].map(|set| found.sets[set].tids.as_slice());
        assert_eq!(set, expected, "{language} {names:?} {said}");
    }

    #[test]
    fn each_language_says_it_in_its_own_way() {
        let java = ["java", "java", "http-nio-8080-e"];
        check("java", java, "thread.id=9 thread.name=http-nio-8080-exec-1", Some(&[9]));
        check("java", ["java", "http-ni..exec-1", "http-ni..exec-2"], "thread.name=http-nio-8080-exec-2", Some(&[9]));
        check("java", ["java", "pool-1", "pool-1"], "thread.id=8 thread.name=pool-1", Some(&[8, 9]));
        check("java", java, "thread.id=1 thread.name=main", Some(&[8]));
        // A thread that has another name for the kernel, and an id of the JVM's own.
        check("java", java, "thread.id=8 thread.name=other", None);
        check("java", java, "thread.id=8", None);

        let python = ["python3", "python3", "python3"];
        check("python", python, "thread.id=139637976 thread.name=MainThread", Some(&[7]));
        check("python", python, "thread.id=139637976 thread.name=Thread-1", Some(&[8, 9]));
        check("python", python, "thread.id=9 thread.name=Thread-1", Some(&[9]));
        // As the interpreter calls thread 8.
        check("python", python, "thread.id=140008 thread.name=Thread-1", Some(&[8]));
        check("python", python, "", None);

        check("rust", ["web", "worker-1", "worker-2"], "thread.id=8 thread.name=worker-2", Some(&[9]));
        check("rust", ["web", "worker-1", "worker-2"], "thread.id=1 thread.name=main", Some(&[7]));
        check("rust", ["web", "tokio-rt-worker", "other"], "thread.name=main", Some(&[7, 8]));
        check("rust", ["web", "tokio-rt-worker", "other"], "thread.id=8", None);
        check("rust/longpole", ["web", "worker", "worker"], "thread.id=8 thread.name=worker", Some(&[8]));

        check("nodejs", ["node", "libuv-worker", "V8 DefaultWorke"], "", Some(&[7]));
        check("go", ["x", "x", "x"], "thread.id=8", None);
        check("cpp", ["x", "x", "x"], "thread.id=8", Some(&[8]));
        check("cpp", ["x", "x", "x"], "thread.id=139637976", None);
    }

    /// For each span and each group the sets of the group were searched one by one: 90,000,000,000 steps.
    #[test]
    fn spans_of_many_sets_are_compared_with_each_group_once() {
        const SETS: u32 = 120_000;
        let tids = |set: u32| ThreadSet { tids: (0..17).filter(|bit| (set + 1) & (1 << bit) != 0).collect(), is_inferred: false };
        let sets: IdVec<SetId, ThreadSet> = (0..SETS).map(tids).collect();
        let of_span: IdVec<SpanRow, Option<SetId>> = sets.ids().map(Some).collect();
        let spans: Vec<SpanRow> = of_span.ids().collect();
        let groups = SpanThreads { of_span, sets, alone: HashSet::new() }.groups(&spans);
        assert_eq!(groups.len(), 18);
        for group in groups {
            let bit = group.tids.map_or(31, |tids| *tids.iter().next().unwrap());
            assert!((1..=SETS).zip(&group.can_be_there).all(|(set, can)| *can == (set & (1 << bit) != 0)));
        }
    }

    #[test]
    fn claims_with_the_same_threads_are_one_set() {
        let claims = (0..2_000).map(|id| format!("a 0..9ms web pid 7 thread.id={id} thread.name=Thread-1\n"));
        let mut recording = text::parse(&claims.collect::<String>()).unwrap();
        recording.threads = threads(["x", "x", "x"]);
        let mut resource = Resource::default();
        resource.attributes.push("telemetry.sdk.language", AttributeValue::Str("python".into()));
        let resource = Arc::new(resource);
        recording.spans.iter_mut().for_each(|span| span.resource = Arc::clone(&resource));
        // The threads 7, 8 and 9 by their ids, and all but the first for the others.
        assert_eq!(SpanThreads::of(&recording).sets.len(), 4);
    }

    #[test]
    fn threads_with_the_same_spans_are_one_group() {
        let mut recording =
            text::parse("a 0..9ms web pid 7 thread.id=8\nb 0..9ms web pid 7 thread.id=8\nc 0..9ms web pid 7\nd 0..9ms web pid 1\n")
                .unwrap();
        recording.threads = threads(["x", "x", "x"]);
        let found = SpanThreads::of(&recording);
        let tids = |tids: &[u32]| Some(tids.iter().copied().collect::<HashSet<u32>>());
        let expected = [
            Group { can_be_there: vec![true, true, true].into(), tids: tids(&[8]) },
            Group { can_be_there: vec![false, false, true].into(), tids: None },
        ];
        let rows = [0, 1, 2].map(SpanRow::at);
        assert_eq!(found.groups(&rows), expected);
        assert_eq!(found.groups(&rows[2..]), [Group { can_be_there: vec![true].into(), tids: None }]);
        assert!(found.is_alone(ThreadKey::new(7, 8)) && !found.is_alone(ThreadKey::new(7, 7)));
    }
}
