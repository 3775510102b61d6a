//! Story: somebody looks at a span and wants exactly the code that ran in it, in a program whose tasks move between threads, whose main
//! thread works, too, and whose spans are shorter than the time between two samples.
//! Guarantees: of the samples of an asynchronous program at least 999 in 1000 are on the right span, and none that is called exact, by
//! record or by journal, is on a wrong one, for a plain user; the journal has the exact time of every span, however short; what a killed
//! program had written is there; nothing stays behind in memory, also where the recorder was killed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, ask, ask_with, example, longpole, plain_user, rows};

/// Least share of samples that must be on the right span.
const RIGHT_SHARE_MIN: f64 = 0.999;

/// Runs the program of known truth as somebody, and returns what it printed.
fn record(command: &mut Command, program: &Path, arguments: &[&str]) -> BTreeMap<String, Vec<String>> {
    let run = command.args(["run", "--"]).arg(program).args(arguments).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success() || arguments == ["die"], "{answer}");
    let text = String::from_utf8(run.stdout).unwrap();
    let said: BTreeMap<String, Vec<String>> = text
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, rest)| (name.to_owned(), rest.split(' ').map(str::to_owned).collect()))
        .collect();
    let journals = Path::new(&said["journals"][0]);
    assert!(!journals.exists(), "{} is still there", journals.display());
    said
}

/// Samples whose stack has a work function, by their evidence and by whether they are on the span of that function.
fn judged(sql: &mut dyn FnMut(&str) -> Value) -> BTreeMap<(String, bool), u64> {
    let answer = sql("SELECT w.function, s.evidence, p.name, count(*) AS n
         FROM samples s
         JOIN (SELECT DISTINCT k.stack_id, f.function
               FROM (SELECT stack_id, unnest(location_ids) AS location_id FROM stacks) k
               JOIN frames f ON f.location_id = k.location_id
               WHERE f.function LIKE '%ground_truth::work_%') w ON w.stack_id = s.stack_id
         LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id
         GROUP BY w.function, s.evidence, p.name");
    let mut judged = BTreeMap::new();
    for row in rows(&answer) {
        let (function, evidence) = (row[0].as_str().unwrap(), row[1].as_str().unwrap());
        let is_right = row[2].as_str().is_some_and(|name| function.ends_with(&format!("work_{name}")));
        *judged.entry((evidence.to_owned(), is_right)).or_default() += row[3].as_u64().unwrap();
    }
    judged
}

/// Holds the samples of the asynchronous program against the truth; at least this number.
fn check_async(longpole: impl Fn() -> Command, samples_min: u64) {
    let mut sql = ask_with(longpole);
    let judged = judged(&mut sql);
    let sum = |is: &dyn Fn(&str, bool) -> bool| -> u64 {
        judged.iter().filter(|((evidence, is_right), _)| is(evidence, *is_right)).map(|(_, count)| count).sum()
    };
    let is_exact = |evidence: &str| matches!(evidence, "record" | "journal");
    let (all, right) = (sum(&|_, _| true), sum(&|_, is_right| is_right));
    assert!(all >= samples_min, "only {all} samples: {judged:?}");
    assert_eq!(sum(&|evidence, is_right| is_exact(evidence) && !is_right), 0, "called exact, and wrong: {judged:?}");
    assert!(right as f64 >= RIGHT_SHARE_MIN * all as f64, "{right} of {all} are right: {judged:?}");
    assert!(sum(&|evidence, _| evidence == "journal") > 0, "the main thread has no record and works: {judged:?}");
    println!("{right} of {all} samples on the right span: {judged:?}");
    assert_eq!(losses(&mut sql, "kind = 'context_disagrees' OR kind LIKE 'journal%'"), "");
}

/// What was lost, of some kinds.
fn losses(sql: &mut dyn FnMut(&str) -> Value, which: &str) -> String {
    let lost = sql(&format!("SELECT kind, count, detail FROM losses WHERE {which}"));
    rows(&lost).map(|row| format!("{} ×{} {}\n", row[0], row[1], row[2])).collect()
}

#[test]
fn tasks_that_move_between_threads_keep_their_samples() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let program = example("ground-truth");
    record(&mut longpole(&store), &program, &["async", "400"]);
    check_async(|| longpole(&store), 500);
}

#[test]
fn a_plain_user_sees_the_same() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "a plain user ties code to spans") else { return };
    let store = sandbox.path("store");
    let program = user.install(&example("ground-truth"));
    record(&mut user.with_store(&store), &program, &["async", "300"]);
    check_async(|| user.with_store(&store), 300);
}

/// `cargo test --workspace --test stories -- --ignored twenty_thousand`: a minute of both processors.
#[test]
#[ignore = "takes a minute"]
fn twenty_thousand_samples_are_on_the_right_span() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "twenty thousand samples are on the right span") else { return };
    let store = sandbox.path("store");
    // Another build of the program may be judged as well: LONGPOLE_STORY_GROUND_TRUTH=target/release/ground-truth.
    let program = std::env::var_os("LONGPOLE_STORY_GROUND_TRUTH").map_or_else(|| example("ground-truth"), PathBuf::from);
    let rounds = std::env::var("LONGPOLE_STORY_ROUNDS").unwrap_or("8000".to_owned());
    record(&mut user.with_store(&store), &user.install(&program), &["async", &rounds]);
    check_async(|| user.with_store(&store), 20_000);
}

#[test]
fn spans_shorter_than_the_sampling_period_have_exact_times() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let truth = record(&mut longpole(&store), &example("ground-truth"), &["sync", "300"]);
    let mut sql = ask(&store);
    let answer = sql("SELECT p.name, sum(c.duration_nanos), count(DISTINCT p.span_id)
         FROM current_spans c JOIN spans p ON p.trace_id = c.trace_id AND p.span_id = c.span_id
         GROUP BY p.name ORDER BY p.name");
    let found: BTreeMap<String, (u64, u64)> =
        rows(&answer).map(|row| (row[0].as_str().unwrap().to_owned(), (row[1].as_u64().unwrap(), row[2].as_u64().unwrap()))).collect();
    for name in ["outer", "middle", "short"] {
        let [least, most, spans] = [0, 1, 2].map(|at| truth[name][at].parse::<u64>().unwrap());
        let (nanos, seen) = found[name];
        assert!((least..=most).contains(&nanos), "{name}: {nanos} ns, and the program took {least} to {most}");
        assert_eq!(seen, spans, "{name}");
    }
    assert_eq!(losses(&mut sql, "kind LIKE 'journal%' OR kind = 'context_disagrees'"), "");
    // A thread's stretches follow each other without a gap, and no two overlap.
    let gaps = sql(
        "SELECT count(*) FROM (
           SELECT start_time_monotonic_nano AS start, lag(end_time_monotonic_nano) OVER (PARTITION BY pid, tid ORDER BY start_time_monotonic_nano) AS before
           FROM current_spans) WHERE before IS NOT NULL AND before <> start",
    );
    assert_eq!(rows(&gaps).next().unwrap()[0], 0);
}

#[test]
fn the_journal_of_a_killed_program_is_kept() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    record(&mut longpole(&store), &example("ground-truth"), &["die"]);
    let answer = ask(&store)(
        "SELECT c.duration_nanos, t.end_time_monotonic_nano - c.end_time_monotonic_nano, c.span_id IS NULL
         FROM current_spans c JOIN threads t ON t.pid = c.pid AND t.tid = c.tid",
    );
    let stretches: Vec<_> = rows(&answer).collect();
    let [stretch] = stretches.as_slice() else { panic!("{answer}") };
    assert!(stretch[0].as_u64().unwrap() > 0, "{answer}");
    assert_eq!((&stretch[1], &stretch[2]), (&Value::from(0), &Value::from(false)), "it held until the thread was gone: {answer}");
}

#[test]
fn a_killed_recorder_leaves_nothing_to_the_next_run() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let mut killed = longpole(&store);
    killed.args(["run", "--", "sh", "-c", "echo $LONGPOLE_JOURNAL_DIR; read line"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut killed = killed.stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(killed.stdout.take().unwrap()), &mut line).unwrap();
    let journals = Path::new(line.trim());
    assert!(journals.is_dir(), "{line}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(journals.is_dir(), "nobody could remove it");
    let next = longpole(&store).args(["run", "--", "true"]).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    assert!(!journals.exists(), "{line}");
    // Its program ends with its input.
    drop(killed.stdin.take());
}
