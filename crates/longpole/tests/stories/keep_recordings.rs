//! Story: recordings pile up; some matter, most do not. And somebody wonders whether longpole sees all there is.
//! Guarantees: a name given to a recording means it everywhere and keeps it from being pruned; pruning takes the oldest and says what
//! it took; `doctor` names what is amiss and what to do; what longpole itself does can be seen, by default is not, and never keeps it from
//! ending.

use std::path::Path;

use crate::support::collector::Collector;
use crate::support::{Sandbox, json, longpole, target};

fn record(store: &Path) {
    assert!(longpole(store).args(["run", "--no-profile", "--summary", "none", "--", "true"]).status().unwrap().success());
}

fn names(store: &Path) -> Vec<String> {
    let list = json(longpole(store).args(["ls", "--format", "json"]));
    list["recordings"].as_array().unwrap().iter().map(|row| row["recording"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn prune_keeps_tagged_recordings() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    for _ in 0..4 {
        record(&store);
    }
    let tag = |arguments: &[&str]| longpole(&store).arg("tag").args(arguments).output().unwrap();
    assert!(tag(&["r1", "baseline"]).status.success());
    assert_eq!(json(longpole(&store).args(["show", "baseline", "--format", "json"]))["recording"], "r1");
    assert_eq!(tag(&["r1", "last"]).status.code(), Some(2), "a tag cannot be a name that means something else");
    assert_eq!(tag(&["r9", "x"]).status.code(), Some(3));

    let prune = |arguments: &[&str]| longpole(&store).arg("prune").args(arguments).output().unwrap();
    let dry = prune(&["--keep", "2", "--dry-run"]);
    assert!(String::from_utf8_lossy(&dry.stdout).contains("would remove r2"), "{}", String::from_utf8_lossy(&dry.stdout));
    assert_eq!(names(&store), ["r4", "r3", "r2", "r1"]);
    assert!(prune(&["--keep", "2"]).status.success());
    assert_eq!(names(&store), ["r4", "r3", "r1"], "the one with a name stays");
    assert!(prune(&["--older-than", "30d", "--max-size", "1TB"]).status.success());
    assert_eq!(names(&store), ["r4", "r3", "r1"], "nothing is that old or large");
    assert!(prune(&["--max-size", "0"]).status.success());
    assert_eq!(names(&store), ["r1"]);
    assert_eq!(prune(&[]).status.code(), Some(2), "without a limit it would take everything or nothing");
    assert!(tag(&["r1", "baseline", "--remove"]).status.success());
    assert!(prune(&["--keep", "0"]).status.success());
    assert!(names(&store).is_empty());
}

#[test]
fn a_tag_means_the_same_recording_in_every_directory() {
    let sandbox = Sandbox::new();
    let (store, folder) = (sandbox.path("store"), sandbox.path("repository"));
    for _ in 0..2 {
        record(&store);
    }
    for tag in ["base", "base.folded"] {
        assert!(longpole(&store).args(["tag", "r1", tag]).status().unwrap().success());
    }
    std::fs::create_dir(&folder).unwrap();
    for file in ["base", "base.folded", "other"] {
        std::fs::write(folder.join(file), "main;hash 3\n").unwrap();
    }
    let ask = |arguments: &[&str]| {
        let out = longpole(&store).current_dir(&folder).args(arguments).args(["--format", "json"]).output().unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert!(out.status.success(), "{arguments:?}: {said}");
        (serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap(), said)
    };
    // A folder that came from elsewhere does not decide what a name means.
    let taken = "longpole: base is both a file and the tag of r1; longpole reads the recording; the file is ./base\n";
    for (arguments, names) in [(["show", "base"].as_slice(), "recording"), (&["top", "base"], "recording"), (&["diff", "base", "r2"], "a")]
    {
        let (answer, said) = ask(arguments);
        let name = answer[names].as_str().or_else(|| answer[names]["recording"].as_str());
        assert_eq!((name, said.as_str()), (Some("r1"), taken), "{arguments:?}: {answer}");
    }
    // A name with the ending of a file means the file.
    let (answer, said) = ask(&["show", "base.folded"]);
    assert_eq!(answer["recording"], "base.folded");
    assert_eq!(said, "longpole: base.folded is both a file and the tag of r1; longpole reads the file\n");
    for file in ["./base", "./base.folded", "other"] {
        let (answer, said) = ask(&["show", file]);
        assert_eq!((answer["recording"].as_str(), said.as_str()), (Some(file), ""));
    }
    // Commands that only read files create no store.
    let none = sandbox.path("none");
    assert!(longpole(&none).current_dir(&folder).args(["show", "other"]).output().unwrap().status.success());
    assert!(!none.exists());
    let handle = longpole(&store).args(["tag", "r1", "p1"]).output().unwrap();
    assert_eq!(handle.status.code(), Some(2), "a handle is something in a recording: {}", String::from_utf8_lossy(&handle.stderr));
}

#[test]
fn the_doctor_names_what_keeps_spans_away() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let view = json(longpole(&store).args(["doctor", "--format", "json"]).env("OTEL_TRACES_SAMPLER", "always_off"));
    let checks = view["checks"].as_array().unwrap();
    let of = |name: &str| checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("nothing about {name}: {view}"));
    assert_eq!(of("otel")["state"], "warn");
    assert!(of("otel")["text"].as_str().unwrap().contains("OTEL_TRACES_SAMPLER") && of("otel")["remedy"].is_string());
    assert_eq!(of("store")["state"], "ok");
    let facts = [("clock", "clock source "), ("ports", "127.0.0.1"), ("symbols", "/usr/lib/debug")];
    for (name, fact) in facts {
        assert!(of(name)["text"].as_str().unwrap().contains(fact), "{name}: {view}");
    }
    let fact = if of("profiling")["state"] == "ok" { " Hz" } else { "no samples: " };
    assert!(of("profiling")["text"].as_str().unwrap().contains(fact), "{view}");
    let file = sandbox.path("file");
    std::fs::write(&file, "").unwrap();
    let view = json(longpole(&file).args(["doctor", "--format", "json"]));
    let store = view["checks"].as_array().unwrap().iter().find(|check| check["name"] == "store").unwrap();
    assert_eq!(store["state"], "warn", "{store}");
}

#[test]
fn the_doctor_checks_a_program() {
    let sandbox = Sandbox::new();
    let look = |program: &std::path::Path| {
        let view = json(longpole(&sandbox.path("store")).arg("doctor").arg(program).args(["--format", "json"]));
        view["checks"].as_array().unwrap().iter().find(|check| check["name"] == "program").unwrap().clone()
    };
    assert_eq!(look(std::path::Path::new("sleep"))["state"], "ok");
    // This very test has the stock processors inside, and the SDK that keeps them off the runtime.
    let me = look(&std::env::current_exe().unwrap());
    assert_eq!(me["state"], "ok", "{me}");
    assert!(me["text"].as_str().unwrap().contains("longpole-sdk"), "{me}");
    let file = sandbox.path("program");
    std::fs::write(&file, "\x7fELF … Shutdown response channel error: …").unwrap();
    let other = look(&file);
    assert_eq!(other["state"], "warn");
    assert!(other["text"].as_str().unwrap().contains("can hang") && other["remedy"].as_str().unwrap().contains("spawn_blocking"));
    assert_eq!(look(&sandbox.path("nothing"))["state"], "warn");
}

#[test]
fn longpole_logs_and_traces_itself_on_request() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = |arguments: &[&str], rust_log: &str| {
        let mut command = longpole(&store);
        command.args(arguments).args(["run", "--no-profile", "--summary", "none", "--", "true"]).env("RUST_LOG", rust_log);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    assert_eq!(run(&[], "debug"), "", "a RUST_LOG of the command's is the command's");
    for seen in [run(&[], "warn,longpole=debug"), run(&["--tracing-level", "info"], "")] {
        assert!(seen.contains("replay") && seen.contains("drain"), "the steps are not told: {seen}");
    }

    // Under another longpole, whose endpoint the environment names: its own spans arrive there, and nowhere in its own recording.
    let (outer, inner) = (sandbox.path("outer"), sandbox.path("inner"));
    let inner_text = inner.to_string_lossy().into_owned();
    let me = env!("CARGO_BIN_EXE_longpole");
    let inner_run = [me, "--store", &inner_text, "--tracing-level", "info", "run", "--no-profile", "--summary", "none", "--", "true"];
    let status = longpole(&outer).args(["run", "--no-profile", "--summary", "none", "--"]).args(inner_run).status().unwrap();
    assert!(status.success());
    let count = |store: &Path, condition: &str| {
        let query = format!("SELECT count(*) AS n FROM spans WHERE {condition}");
        json(longpole(store).args(["sql", "--format", "json", &query]))["rows"][0]["n"].as_u64().unwrap()
    };
    assert!(
        count(&outer, "service_name = 'longpole' AND name = 'replay'") > 0,
        "the outer recording does not have the spans of the inner longpole"
    );
    assert_eq!(count(&inner, "true"), 0, "longpole recorded itself");
}

#[test]
fn its_own_spans_never_delay_its_exit() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    // Embucket's two ways to send, which its command lines name; here both are one thread of longpole's own.
    for processor in ["batch-span-processor", "batch-span-processor-experimental-async-runtime"] {
        let told = |endpoint: Option<&str>, command: &[&str]| {
            let mut longpole = longpole(&store);
            longpole.args(["--tracing-level", "trace", "--tracing-span-processor", processor]).args(command);
            longpole.envs(endpoint.map(|endpoint| ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)));
            longpole.output().unwrap()
        };
        let run = ["run", "--no-profile", "--summary", "none", "--", "true"];
        let (silent, comes) = target::silent();
        // Nobody is named, nobody is there, nobody answers; and it comes back each time.
        let (nobody, mute) = (format!("http://{}", target::dead()), format!("http://{silent}"));
        for (endpoint, command) in [(None, &run[..]), (Some(&*nobody), &run), (Some(&*mute), &["ls"])] {
            let out = told(endpoint, command);
            assert!(out.status.success(), "{processor}, {endpoint:?}: {}", String::from_utf8_lossy(&out.stderr));
        }
        assert!(comes.try_recv().is_ok(), "{processor}: nothing was sent at all");

        let collector = Collector::start(&sandbox, processor);
        assert!(told(Some(&format!("http://{}", collector.address)), &run).status.success());
        let collected = collector.ends();
        let names: Vec<&str> = collected.spans.iter().map(|span| span.name.as_str()).collect();
        assert!(["run", "replay", "drain"].iter().all(|step| names.contains(step)), "{processor}: {names:?}");
    }
    let unknown = longpole(&store).args(["--tracing-span-processor", "simple", "ls"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&unknown.stderr).contains("batch-span-processor-experimental-async-runtime"),
        "what there is, is not said"
    );
}
