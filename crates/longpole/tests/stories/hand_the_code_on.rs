//! Story: somebody wants the code of a recording in a tool they know.
//! Guarantees: `go tool pprof`, a Python reader and the Firefox Profiler open what is exported and name the function that longpole names,
//! with its time to the nanosecond or millisecond that they show; blocked time without that of idle workers is what `flame --off-cpu` has;
//! samples carry the ids of their spans; the same time stands in folded stacks, in speedscope's file and in the picture; a recording
//! without code gives the wall time of its spans, and says so; longpole reports what a file does not hold.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Sandbox, can_sample, example, json, longpole, skip};

/// How often the viewer of Firefox may start: it gives up on itself after half a second, which a busy machine needs.
const STARTS_MAX: usize = 20;

/// Exports the last recording, and returns the reported losses.
#[track_caller]
fn export(store: &Path, path: &Path, words: &[&str]) -> String {
    let out = longpole(store).args(["export", "last", "-o"]).arg(path).args(words).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(out.status.success(), "{words:?}: {said}");
    said
}

fn flame(store: &Path, words: &[&str]) -> Value {
    json(longpole(store).args(["flame", "--format", "json"]).args(words))
}

/// The function with the most time in itself, and that time.
fn top(store: &Path) -> (String, u64) {
    let view = json(longpole(store).args(["top", "--limit", "1", "--format", "json"]));
    let function = &view["functions"][0];
    (function["function"].as_str().unwrap().to_owned(), function["self_nanos"].as_u64().unwrap())
}

/// The same, with all that has its name: Go goes by names, in any binary.
fn top_by_name(store: &Path) -> (String, u64) {
    let (function, _) = top(store);
    let view = json(longpole(store).args(["top", "--limit", "0", "--format", "json"]));
    let of_name = view["functions"].as_array().unwrap().iter().filter(|it| it["function"] == function.as_str());
    let nanos = of_name.map(|it| it["self_nanos"].as_u64().unwrap()).sum();
    (function, nanos)
}

#[test]
fn exported_code_opens_in_every_tool() {
    if !can_sample("exported_code_opens_in_every_tool") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--summary", "none", "--"]).arg(example("deploy")).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    pprof_of_go(&sandbox, &store);
    pprof_of_python(&sandbox, &store);
    firefox(&sandbox, &store);
    speedscope(&sandbox, &store);
    folded(&sandbox, &store);
    chrome(&sandbox, &store);
    picture(&sandbox, &store);
    a_span_alone(&sandbox, &store);
}

fn go(profile: &Path, words: &[&str]) -> String {
    let out = Command::new("go").args(["tool", "pprof"]).args(words).arg(profile).output().unwrap();
    assert!(out.status.success(), "{words:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

/// The sums of the four types of values that `-raw` prints.
fn sums(raw: &str) -> [u64; 4] {
    let mut sums = [0; 4];
    for line in raw.lines() {
        let Some((values, _)) = line.split_once(": ") else { continue };
        let values: Vec<u64> = values.split_whitespace().filter_map(|value| value.parse().ok()).collect();
        if let Ok(values) = <[u64; 4]>::try_from(values) {
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
    }
    sums
}

fn pprof_of_go(sandbox: &Sandbox, store: &Path) {
    if Command::new("go").arg("version").stdout(Stdio::null()).status().is_err() {
        return skip("exported_code_opens_in_every_tool", "no Go, so not in `go tool pprof`");
    }
    let profile = sandbox.path("deploy.pb.gz");
    let said = export(store, &profile, &[]);
    assert!(said.contains("a profile holds only sums") && said.contains("only .lpole keeps them"), "{said}");
    let (function, nanos) = top_by_name(store);
    let table = go(&profile, &["-top", "-unit=ns"]);
    let first = table.lines().skip_while(|line| !line.trim_start().starts_with("flat ")).nth(1).unwrap();
    assert!(first.contains(&function) && first.trim_start().starts_with(&format!("{nanos}ns")), "longpole: {function} {nanos}\n{table}");

    let raw = go(&profile, &["-raw"]);
    let on_cpu = flame(store, &[]);
    let [samples, cpu, waits, _] = sums(&raw);
    assert_eq!((Some(samples), Some(cpu)), (on_cpu["samples"].as_u64(), on_cpu["weight_nanos"].as_u64()));
    let off_cpu = flame(store, &["--off-cpu"]);
    let work = go(&profile, &["-raw", "-tagignore=idle=true", "-ignore=stack not seen"]);
    let [.., work_waits, work_nanos] = sums(&work);
    assert_eq!((Some(work_waits), Some(work_nanos)), (off_cpu["samples"].as_u64(), off_cpu["weight_nanos"].as_u64()));
    assert!(waits > work_waits, "the example has idle workers, and no wait is one of theirs");
    // The mappings know their build ids, and the program of the command is the first.
    let mappings: Vec<&str> = raw.lines().skip_while(|line| *line != "Mappings").skip(1).collect();
    assert!(mappings[0].contains("/deploy ") && mappings.iter().any(|line| line.contains("libc.so")), "{mappings:?}");

    // The spans that longpole ties the samples to.
    let query = "SELECT count(*) AS n, p.name AS name FROM samples s JOIN spans p ON p.trace_id = s.trace_id AND p.span_id = s.span_id \
                 GROUP BY p.name ORDER BY n DESC LIMIT 1";
    let rows = json(longpole(store).args(["sql", "--format", "json", query]));
    let (count, name) = (rows["rows"][0]["n"].as_u64().unwrap(), rows["rows"][0]["name"].as_str().unwrap());
    let tagged = go(&profile, &["-raw", &format!("-tagfocus=span_name=^{name}$")]);
    assert_eq!(sums(&tagged)[0], count, "samples of {name}");
    assert!(tagged.contains("span_id:[") && tagged.contains("process:["), "{tagged}");
}

/// Reads a profile by its published schema: that is written down here, and the reader is protobuf's own.
const PYTHON: &str = r#"
import collections, gzip, sys
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

T = descriptor_pb2.FieldDescriptorProto
file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
def message(name, *fields):
    m = file.message_type.add(name=name)
    for number, label, kind, field in fields:
        f = m.field.add(name=field, number=number, label=T.LABEL_REPEATED if label else T.LABEL_OPTIONAL)
        if isinstance(kind, str):
            f.type, f.type_name = T.TYPE_MESSAGE, ".perftools.profiles." + kind
        else:
            f.type = kind
I, U, S, B = T.TYPE_INT64, T.TYPE_UINT64, T.TYPE_STRING, T.TYPE_BOOL
message("ValueType", (1, 0, I, "type"), (2, 0, I, "unit"))
message("Label", (1, 0, I, "key"), (2, 0, I, "str"), (3, 0, I, "num"), (4, 0, I, "num_unit"))
message("Sample", (1, 1, U, "location_id"), (2, 1, I, "value"), (3, 1, "Label", "label"))
message("Mapping", (1, 0, U, "id"), (2, 0, U, "memory_start"), (3, 0, U, "memory_limit"), (5, 0, I, "filename"), (6, 0, I, "build_id"))
message("Line", (1, 0, U, "function_id"), (2, 0, I, "line"))
message("Location", (1, 0, U, "id"), (2, 0, U, "mapping_id"), (3, 0, U, "address"), (4, 1, "Line", "line"))
message("Function", (1, 0, U, "id"), (2, 0, I, "name"), (4, 0, I, "filename"))
message("Profile", (1, 1, "ValueType", "sample_type"), (2, 1, "Sample", "sample"), (3, 1, "Mapping", "mapping"),
    (4, 1, "Location", "location"), (5, 1, "Function", "function"), (6, 1, S, "string_table"), (12, 0, I, "period"))
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
profile = message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))()
profile.ParseFromString(gzip.open(sys.argv[1]).read())
text = profile.string_table
cpu = [text[t.type] for t in profile.sample_type].index("cpu")
locations = {l.id: l for l in profile.location}
functions = {f.id: text[f.name] for f in profile.function}
own = collections.Counter()
for sample in profile.sample:
    own[functions[locations[sample.location_id[0]].line[0].function_id]] += sample.value[cpu]
print(*own.most_common(1)[0], sep="\n")
"#;

fn pprof_of_python(sandbox: &Sandbox, store: &Path) {
    let Some(python) = std::env::var_os("LONGPOLE_PYTHON") else {
        return skip("exported_code_opens_in_every_tool", "no Python with protobuf; `cargo xtask test` makes one");
    };
    let profile = sandbox.path("deploy.pprof");
    export(store, &profile, &[]);
    let out = Command::new(python).args(["-c", PYTHON]).arg(&profile).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let (function, nanos) = top(store);
    assert_eq!(String::from_utf8(out.stdout).unwrap(), format!("{function}\n{nanos}\n"));
}

/// The Firefox Profiler's own code, as it is published for the command line, with a profile loaded.
struct Viewer {
    script: PathBuf,
    session: PathBuf,
}

impl Viewer {
    fn open(sandbox: &Sandbox, profile: &Path) -> Option<Viewer> {
        let Some(packages) = std::env::var_os("LONGPOLE_VIEWERS") else {
            skip("exported_code_opens_in_every_tool", "no Firefox Profiler; `cargo xtask test` installs it where npm is");
            return None;
        };
        let script = Path::new(&packages).join("@firefox-devtools/profiler-cli/dist/profiler-cli.js");
        let viewer = Viewer { script, session: sandbox.path("viewer") };
        let mut said = String::new();
        for _ in 0..STARTS_MAX {
            let out = viewer.command(&["load"]).arg(profile).output().unwrap();
            if out.status.success() {
                return Some(viewer);
            }
            said = String::from_utf8_lossy(&out.stderr).into_owned();
            viewer.command(&["stop", "--all"]).output().unwrap();
        }
        panic!("the Firefox Profiler does not load {}: {said}", profile.display());
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("node");
        command.arg(&self.script).args(words).env("PROFILER_CLI_SESSION_DIR", &self.session).stdin(Stdio::null());
        command
    }

    fn asks(&self, words: &[&str]) -> Value {
        json(self.command(words).arg("--json"))
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.command(&["stop", "--all"]).output().ok();
    }
}

fn firefox(sandbox: &Sandbox, store: &Path) {
    let profile = sandbox.path("deploy.firefox.json.gz");
    export(store, &profile, &[]);
    assert_eq!(std::fs::read(&profile).unwrap()[..2], [0x1f, 0x8b], "a name that ends in .gz is gzipped");
    let Some(viewer) = Viewer::open(sandbox, &profile) else { return };
    let threads = viewer.asks(&["thread", "list"]);
    // Each query is a process of its own, so this queries only the provider that has the function by construction.
    let of_provider = |thread: &&Value| thread["processName"].as_str().is_some_and(|name| name.starts_with("provider-comput"));
    let mut own: BTreeMap<String, f64> = BTreeMap::new();
    let mut categories: BTreeMap<String, f64> = BTreeMap::new();
    for thread in threads["threads"].as_array().unwrap().iter().filter(of_provider) {
        let handle = thread["threadHandle"].as_str().unwrap();
        let answer = viewer.asks(&["thread", "samples", "--include-idle", "--thread", handle, "--limit", "0"]);
        for function in answer["topFunctionsBySelf"].as_array().unwrap() {
            // `libc.so.6!memcpy`
            let name = function["name"].as_str().unwrap();
            let name = name.split_once('!').map_or(name, |(_, name)| name);
            *own.entry(name.to_owned()).or_default() += function["selfSamples"].as_f64().unwrap();
        }
        for category in answer["categoryBreakdown"]["categories"].as_array().unwrap() {
            *categories.entry(category["name"].as_str().unwrap().to_owned()).or_default() += category["samples"].as_f64().unwrap();
        }
    }
    let (function, nanos) = top(store);
    let (first, millis) =
        own.iter().filter(|(name, _)| !name.starts_with('[')).max_by(|a, b| a.1.total_cmp(b.1)).expect("functions with time in themselves");
    assert_eq!(*first, function, "{own:?}");
    assert!((millis - nanos as f64 / 1e6).abs() < 1.0, "{first}: {millis} ms, longpole has {nanos} ns");
    // Workers wait for longer than they work.
    assert!(categories["User"] >= *millis && categories["Idle"] > categories["User"], "{categories:?}");
    let spans = viewer.asks(&["thread", "markers", "--thread", with_most_markers(&threads), "--list"]);
    assert!(spans.to_string().contains("create"), "{spans}");
}

/// The thread that has the most spans.
fn with_most_markers(threads: &Value) -> &str {
    let list = threads["threads"].as_array().unwrap();
    let most = list.iter().max_by_key(|thread| thread["markerCount"].as_u64()).unwrap();
    most["threadHandle"].as_str().unwrap()
}

fn speedscope(sandbox: &Sandbox, store: &Path) {
    let path = sandbox.path("deploy.speedscope.json");
    export(store, &path, &[]);
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let mut own: BTreeMap<&str, u64> = BTreeMap::new();
    for profile in file["profiles"].as_array().unwrap() {
        let (samples, weights) = (profile["samples"].as_array().unwrap(), profile["weights"].as_array().unwrap());
        let sum: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!((samples.len(), profile["endValue"].as_u64()), (weights.len(), Some(sum)));
        for (stack, weight) in samples.iter().zip(weights) {
            let Some(leaf) = stack.as_array().unwrap().last() else { continue };
            *own.entry(frames[leaf.as_u64().unwrap() as usize]["name"].as_str().unwrap()).or_default() += weight.as_u64().unwrap();
        }
    }
    let (function, nanos) = top(store);
    assert_eq!(own[function.as_str()], nanos);
    let shown = file["activeProfileIndex"].as_u64().unwrap() as usize;
    assert!(file["profiles"][shown]["name"].as_str().unwrap().contains(" › "), "{}", file["profiles"][shown]["name"]);
}

fn folded(sandbox: &Sandbox, store: &Path) {
    let path = sandbox.path("deploy.folded");
    let said = export(store, &path, &[]);
    assert!(said.contains("folded stacks hold names and sums"), "{said}");
    let text = std::fs::read_to_string(&path).unwrap();
    let printed = longpole(store).args(["flame", "--format", "folded"]).output().unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), text, "`flame --format folded` is the same text");
    let to_dash = longpole(store).args(["export", "last", "--to", "folded", "-o", "-"]).output().unwrap();
    assert_eq!(String::from_utf8(to_dash.stdout).unwrap(), text, "`-o -` is standard output");
    let sum = |text: &str| text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(Some(sum(&text)), flame(store, &[])["weight_nanos"].as_u64());
    assert!(text.lines().any(|line| line.starts_with("provider-comput;")), "no line begins with a process:\n{text}");
    for time in ["--off-cpu", "--wall"] {
        export(store, &path, &[time]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(Some(sum(&text)), flame(store, &[time])["weight_nanos"].as_u64(), "{time}");
    }
}

fn chrome(sandbox: &Sandbox, store: &Path) {
    let path = sandbox.path("deploy.chrome.json");
    export(store, &path, &[]);
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    assert!(events.iter().all(|event| event["ts"].as_f64().unwrap_or(0.0) >= 0.0), "an event before the first");
    let (function, _) = top(store);
    let chunks: Vec<&Value> = events.iter().filter(|event| event["name"] == "ProfileChunk").map(|it| &it["args"]["data"]).collect();
    let nodes = || chunks.iter().flat_map(|chunk| chunk["cpuProfile"]["nodes"].as_array().unwrap());
    assert!(nodes().any(|node| node["callFrame"]["functionName"] == function.as_str()), "{function} is in no profile");
    let mut ids: Vec<u64> = nodes().map(|node| node["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "the numbers of nodes repeat");
    let spans = events.iter().filter(|event| event["ph"] == "X" && event["cat"] != "wait").count();
    assert_eq!(Some(spans as u64), json(longpole(store).args(["show", "--format", "json"]))["spans"].as_u64());
    // The Firefox Profiler reads these too.
    let Some(viewer) = Viewer::open(sandbox, &path) else { return };
    assert!(!viewer.asks(&["thread", "list"])["threads"].as_array().unwrap().is_empty());
}

fn picture(sandbox: &Sandbox, store: &Path) {
    let (function, _) = top(store);
    for time in [&[][..], &["--off-cpu"], &["--wall"], &["--span", "p1"]] {
        let path = sandbox.path("flame.svg");
        let out = longpole(store).args(["flame", "-o"]).arg(&path).args(time).output().unwrap();
        assert!(out.status.success() && out.stdout.is_empty(), "{time:?}: {}", String::from_utf8_lossy(&out.stderr));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n") && !text.contains("<script"), "{time:?}");
        assert_eq!(text.matches("<g>").count(), text.matches("</g>").count());
        assert_eq!(text.contains(&function.replace('<', "&lt;").replace('>', "&gt;")), time != ["--off-cpu"], "{time:?}");
    }
}

fn a_span_alone(sandbox: &Sandbox, store: &Path) {
    let path = sandbox.path("span.folded");
    export(store, &path, &["--span", "p1"]);
    let printed = longpole(store).args(["flame", "p1", "--format", "folded"]).output().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), text);
    let sum: u64 = text.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
    assert_eq!(Some(sum), flame(store, &["--span", "p1"])["weight_nanos"].as_u64());
    for words in [&["--to", "otlp-json"][..], &["--to", "pprof", "--of", "spans"]] {
        let refused = longpole(store).args(["export", "--span", "p1"]).args(words).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{words:?}");
    }
    let refused = longpole(store).args(["export", "--to", "folded", "--span", "s99999"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(3));
}

#[test]
fn a_recording_without_code_exports_span_times_and_says_so() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap();
    assert!(run.success());
    let out = longpole(&store).args(["export", "--to", "pprof"]).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("r1 has no code, so the profile shows the wall time of its spans"), "{said}");
    assert_eq!(out.stdout[..2], [0x1f, 0x8b]);
    let out = longpole(&store).args(["export", "--to", "pprof", "--of", "spans"]).output().unwrap();
    assert!(!String::from_utf8(out.stderr).unwrap().contains("has no code"), "a choice of the user is not commented");
    for words in [&["--to", "pprof", "--of", "code"][..], &["--to", "speedscope"]] {
        let out = longpole(&store).arg("export").args(words).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.code() == Some(1) && said.contains("there is no code in r1"), "{words:?}: {said}");
    }
    assert_eq!(longpole(&store).args(["export", "--to", "zipkin", "--of", "code"]).output().unwrap().status.code(), Some(2));
}
