//! Story: somebody has a profile that another tool took, and wants to know what to fix first.
//! Guarantees: a file of `perf record` has the same top functions as in `perf report`, however its stacks were taken; a profile of Go has
//! the figures of `go tool pprof`; folded stacks are read; a profile of OTLP has its moments and the spans that it links; the answer says what a profile lacks; a file that is cut off shows what stands
//! before; two profiles are compared function by function; what is no profile of time is refused by name; an invalid line is reported by its number.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, json, longpole, role, skip};

/// Set where this binary is the program that is profiled.
const BURN: &str = "LONGPOLE_STORY_BURN";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn top(store: &Path, what: &Path) -> Value {
    json(longpole(store).arg("top").arg(what).args(["--limit", "0", "--all-functions", "--format", "json"]))
}

/// Samples in a function itself: all stand for the same time.
fn own_samples(top: &Value, function: &str) -> u64 {
    let (all, weight) = (top["samples"].as_u64().unwrap(), top["weight_nanos"].as_u64().unwrap());
    let functions = top["functions"].as_array().unwrap();
    let named = functions.iter().filter(|f| f["function"].as_str().unwrap().ends_with(function));
    let own: u64 = named.map(|f| f["self_nanos"].as_u64().unwrap()).sum();
    (own * all + weight / 2) / weight
}

fn answers(program: &str, argument: &str) -> bool {
    Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The program: two functions that burn two parts and one of its CPU time.
#[test]
fn burn() {
    if std::env::var_os(BURN).is_none() {
        return;
    }
    for _ in 0..40 {
        std::hint::black_box(hash_block(std::hint::black_box(10_000_000)));
        std::hint::black_box(sort_rows(std::hint::black_box(5_000_000)));
    }
}

// Nothing in them is a call that could be inlined: perf counts that for the function around it.
#[inline(never)]
fn hash_block(rounds: u64) -> u64 {
    let (mut x, mut i) = (1u64, 0);
    while i < rounds {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        i += 1;
    }
    x
}

#[inline(never)]
fn sort_rows(rounds: u64) -> u64 {
    let (mut x, mut i) = (2u64, 0);
    while i < rounds {
        x ^= x << 7;
        x ^= x >> 9;
        x ^= x << 8;
        i += 1;
    }
    x
}

/// Samples of each symbol as `perf report` counts them, most first.
fn perf_report(file: &Path) -> Vec<(u64, String)> {
    let report = Command::new("perf")
        .args(["report", "--stdio", "-q", "--no-children", "-g", "none", "-F", "sample,sym", "-i"])
        .arg(file)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.trim().split_once(char::is_whitespace));
    let mut all: Vec<(u64, String)> =
        lines.filter_map(|(count, symbol)| Some((count.parse().ok()?, symbol.trim().trim_start_matches("[.] ").to_owned()))).collect();
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    all
}

#[test]
fn perf_data_has_the_top_functions_of_perf_report() {
    if !answers("perf", "--version") {
        skip("perf.data beside perf report", "perf is not there");
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let ways: [(&str, &[&str]); 5] = [
        ("plain", &[]),
        ("frame pointers", &["-g"]),
        ("copied stacks", &["--call-graph", "dwarf,16384"]),
        ("compressed", &["-g", "-z"]),
        ("with switches", &["-g", "--switch-events"]),
    ];
    for (way, arguments) in ways {
        let file = sandbox.path("perf.data");
        let mut perf = Command::new("perf");
        perf.args(["record", "-q", "-e", "cpu-clock:u", "-F", "499"]).args(arguments).arg("-o").arg(&file).arg("--");
        let recorded = perf.args(role("read_a_profile::burn")).env(BURN, "1").stdin(Stdio::null()).output().unwrap();
        if !recorded.status.success() {
            skip("perf.data beside perf report", &format!("perf may not record: {}", String::from_utf8_lossy(&recorded.stderr).trim()));
            return;
        }
        let (theirs, ours) = (perf_report(&file), top(&store, &file));
        assert_eq!(ours["samples"].as_u64().unwrap(), theirs.iter().map(|(count, _)| count).sum::<u64>(), "{way}: {theirs:?}");
        for function in ["hash_block", "sort_rows"] {
            let counted: u64 = theirs.iter().filter(|(_, symbol)| symbol.contains(function)).map(|(count, _)| count).sum();
            assert!(counted > 10, "{way}: {theirs:?}");
            assert!(own_samples(&ours, function).abs_diff(counted) <= 1, "{way}: {function} has {counted} samples there, and here: {ours}");
        }
        let first = ours["functions"][0]["function"].as_str().unwrap();
        assert!(theirs[0].1.contains(first.rsplit("::").next().unwrap()), "{way}: {first}, {theirs:?}");
        let shown = json(longpole(&store).arg("show").arg(&file).args(["--format", "json"]));
        assert_eq!((&shown["processes"], &shown["spans"], &shown["mode"]), (&1.into(), &0.into(), &"user".into()), "{way}");
        assert_eq!(shown["command"][1], "--exact", "{way}: {shown}");
        if way == "copied stacks" {
            let flame = String::from_utf8(longpole(&store).arg("flame").arg(&file).output().unwrap().stdout).unwrap();
            assert!(flame.contains("read_a_profile::burn"), "the stacks do not reach the caller: {flame}");
        }
    }
}

#[test]
fn a_go_profile_has_the_figures_of_go_tool_pprof() {
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), fixture("pprof/go-cpu.pprof"));
    let ours = top(&store, &file);
    let of = |function: &str| {
        let found = ours["functions"].as_array().unwrap().iter().find(|f| f["function"] == function).unwrap();
        [&found["self_nanos"], &found["total_nanos"]].map(|nanos| nanos.as_u64().unwrap() / 1_000_000)
    };
    assert_eq!((of("main.hashBlock"), of("main.sortRows"), of("main.main")), ([750, 1050], [480, 780], [0, 1830]));
    assert_eq!(ours["samples"], 183);
    if answers("go", "version") {
        let theirs = Command::new("go").args(["tool", "pprof", "-top", "-unit=ms"]).arg(&file).output().unwrap();
        let text = String::from_utf8_lossy(&theirs.stdout).into_owned();
        let table = text.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).skip(1);
        let mut rows = 0;
        for row in table {
            let words: Vec<&str> = row.split_whitespace().collect();
            let millis = |word: &str| word.trim_end_matches("ms").parse::<u64>().unwrap_or(0);
            assert_eq!(of(words[5]), [millis(words[0]), millis(words[3])], "{row}");
            rows += 1;
        }
        assert!(rows > 3, "{text}");
    } else {
        skip("pprof beside go tool pprof", "Go is not there");
    }
    // It holds sums: no pole and no path, and the answer says so.
    let shown = json(longpole(&store).arg("show").arg(&file).args(["--format", "json"]));
    assert_eq!((&shown["poles"], &shown["functions"][0]["function"]), (&Value::Array(Vec::new()), &"main.hashBlock".into()));
    assert!(shown["quality"].as_array().unwrap().iter().any(|q| q["code"] == "samples_untimed"), "{shown}");
    let text = String::from_utf8(longpole(&store).arg("show").arg(&file).output().unwrap().stdout).unwrap();
    assert!(text.contains("HOT FUNCTIONS") && !text.contains("LONG POLES") && !text.contains("0 spans"), "{text}");
    // Kept, it says the same.
    assert!(longpole(&store).arg("import").arg(&file).stdout(Stdio::null()).status().unwrap().success());
    let kept = json(longpole(&store).args(["top", "--limit", "0", "--all-functions", "--format", "json"]));
    assert_eq!(kept["functions"], ours["functions"]);
    let spans = json(longpole(&store).args(["sql", "--format", "json", "SELECT count(*) AS n FROM samples WHERE span_id IS NOT NULL"]));
    assert!(spans["rows"][0]["n"].as_u64().unwrap() > 10, "the labels that name a span are gone");
}

#[test]
fn folded_stacks_are_imported_and_gaps_reported() {
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), sandbox.path("out.folded"));
    std::fs::write(&file, "# py-spy\nmain;work;hash 12\n\nmain;sort rows 3\n").unwrap();
    let ours = top(&store, &file);
    assert_eq!((&ours["samples"], own_samples(&ours, "hash"), own_samples(&ours, "sort rows")), (&15.into(), 12, 3));
    // What `show` says is missing, the list of functions says, too.
    let text = String::from_utf8(longpole(&store).arg("top").arg(&file).output().unwrap().stdout).unwrap();
    assert!(text.contains("quality   ") && text.contains("samples without a time"), "{text}");
    assert!(ours["quality"].as_array().unwrap().iter().any(|note| note["code"] == "samples_untimed"), "{ours}");
    let shown = json(longpole(&store).arg("show").arg(&file).args(["--format", "json"]));
    let codes: Vec<&str> = shown["quality"].as_array().unwrap().iter().map(|q| q["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["samples_untimed", "weights_assumed"]);
    for command in [vec!["flame"], vec!["frame", "f1"], vec!["tree"], vec!["poles"], vec!["threads"], vec!["span", "s1"]] {
        let done = longpole(&store).args(&command).arg(&file).output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn two_profiles_are_compared_function_by_function() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let file = |name: &str, stacks: &str| {
        let path = sandbox.path(name);
        std::fs::write(&path, stacks).unwrap();
        path
    };
    let before = file("before.folded", "main;handle;parse 60\nmain;handle;render 20\nmain 20\n");
    let after = file("after.folded", "main;handle;parse 20\nmain;handle;render 20\nmain 20\n");
    let diff = json(longpole(&store).arg("diff").args([&before, &after]).args(["--format", "json"]));
    let code = &diff["code"];
    let parse = &code["functions"][0];
    assert_eq!(
        (parse["function"].as_str(), parse["own"][0].as_i64(), parse["own"][1].as_i64()),
        (Some("parse"), Some(60_000_000), Some(20_000_000))
    );
    assert_eq!((code["sampled_nanos"][0].as_i64(), code["sampled_nanos"][1].as_i64()), (Some(100_000_000), Some(60_000_000)));
    assert_eq!(diff["notes"].as_array().unwrap().len(), 0, "{diff}");
    let text = longpole(&store).arg("diff").args([&before, &after]).output().unwrap();
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("-40.0ms") && text.contains("parse") && !text.contains("critical path"), "{text}");
}

#[test]
fn an_otlp_profile_has_times_and_spans() {
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), fixture("otlp-profiles/app.otlp-profiles"));
    let ours = top(&store, &file);
    assert_eq!((&ours["samples"], own_samples(&ours, "hash"), own_samples(&ours, "render")), (&35.into(), 20, 10));
    let shown = json(longpole(&store).arg("show").arg(&file).args(["--format", "json"]));
    let said: Vec<&str> = shown["quality"].as_array().unwrap().iter().map(|q| q["detail"].as_str().unwrap()).collect();
    assert_eq!(said, ["longpole shows one sample type of a file: samples/count"], "{shown}");

    let span = |id: &str, name: &str, start: u64, end: u64| {
        let at = |millis: u64| (1_700_000_000_000_000_000 + millis * 1_000_000).to_string();
        serde_json::json!({ "traceId": "ab".repeat(16), "spanId": id.repeat(8), "name": name,
            "startTimeUnixNano": at(start), "endTimeUnixNano": at(end) })
    };
    let spans = [span("01", "checkout", 0, 200), span("02", "page", 200, 300)];
    let trace = sandbox.path("trace.json");
    let document = serde_json::json!({ "resourceSpans": [{ "scopeSpans": [{ "spans": spans }] }] });
    std::fs::write(&trace, document.to_string()).unwrap();
    let done = longpole(&store).args(["import", "--together"]).arg(&trace).arg(&file).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let sql = |query: &str| json(longpole(&store).args(["sql", query, "--format", "json"]))["rows"].clone();
    let tied = sql(
        "SELECT p.name, s.evidence, count(*) AS n, max(s.time_unix_nano) - min(s.time_unix_nano) AS span_nanos
         FROM samples s LEFT JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id GROUP BY p.name, s.evidence ORDER BY n DESC",
    );
    assert_eq!(
        tied,
        serde_json::json!([
            { "name": "checkout", "evidence": "label", "n": 20, "span_nanos": 190_000_000 },
            { "name": "page", "evidence": "label", "n": 10, "span_nanos": 90_000_000 },
            { "name": null, "evidence": "none", "n": 5, "span_nanos": 40_000_000 },
        ])
    );
    let people = sql("SELECT p.name AS program, t.name AS thread, t.tid FROM threads t JOIN processes p ON p.pid = t.pid");
    assert_eq!(people, serde_json::json!([{ "program": "app", "thread": "worker", "tid": 8 }]));

    let older = fixture("otlp-profiles/python-proto-1.38.otlp-profiles");
    let done = longpole(&store).arg("import").arg(&older).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(1) && said.contains("another version of the format"), "{said}");
}

#[test]
fn an_unreadable_profile_is_refused_with_reason_and_position() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let said = |name: &str, bytes: &[u8]| {
        let path = sandbox.path(name);
        std::fs::write(&path, bytes).unwrap();
        let done = longpole(&store).arg("import").arg(&path).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stderr).unwrap()
    };
    let lines: String = (10..40).map(|i| format!("main;f{i} 1\n")).collect();
    let broken = said("x.folded", format!("{lines}no number\n").as_bytes());
    assert!(broken.contains("expected a stack and then a number, in line 31 at byte 330"), "{broken}");
    let go = std::fs::read(fixture("pprof/go-cpu.pb")).unwrap();
    let cut = said("cut.pb", &go[..go.len() - 10]);
    assert!(cut.contains("bytes end inside a field") && cut.contains("at byte"), "{cut}");
    // alloc_space/bytes and nothing else.
    let mut heap = vec![0x0a, 4, 8, 1, 16, 2, 0x32, 0];
    for text in ["alloc_space", "bytes"] {
        heap.extend([0x32, text.len() as u8]);
        heap.extend(text.as_bytes());
    }
    let heap = said("heap.pb", &heap);
    assert!(heap.contains("it counts alloc_space/bytes; longpole reads only profiles of time"), "{heap}");
    let swapped = said("big-endian.data", &[&b"2ELIFREP"[..], &[0; 96]].concat());
    assert!(swapped.contains("the other byte order"), "{swapped}");

    // The part before a cut is shown and the cut reported, also in a packed file.
    let whole = std::fs::read(fixture("perf/frame-pointers.data")).unwrap();
    let cut = sandbox.path("cut.data");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let shown = json(longpole(&store).arg("show").arg(&cut).args(["--format", "json"]));
    let samples = shown["samples"].as_u64().unwrap();
    let fault = shown["quality"].as_array().unwrap().iter().find(|q| q["code"] == "file_cut").expect("the cut is not said").clone();
    assert!((1..57).contains(&samples) && fault["detail"].as_str().unwrap().contains("at byte"), "{samples} {fault}");
    assert!(Command::new("gzip").arg("-k").arg(&cut).status().unwrap().success());
    assert_eq!(top(&store, &sandbox.path("cut.data.gz"))["samples"], samples);
}
