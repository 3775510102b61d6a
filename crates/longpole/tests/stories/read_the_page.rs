//! Story: after the run, a person opens the page, selects the first pole, reads its hot function, clicks it and sees its spans, and reads
//! of another pole for which lock it waits and in which function, and which threads were busy in a part of the run; folds what is not the
//! program's own code, and looks at one service alone; one who deploys with Pulumi reads there whether it is the cloud, and
//! which resource; one who is new to a shop reads on the page of its server who calls whom, and finds the one slow checkout, and which function
//! of a service uses its CPU time, and since when.
//! Guarantees: all of that works in a real browser, without a request to anywhere else and without an error on the console; page and
//! terminal split a deployment's time in the same words; the map of services has the numbers of the spans that were sent, and the page of profiles those of
//! the stacks; without the address that `open` printed the page answers nothing.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::http;
use crate::support::served::Served;
use crate::support::{Sandbox, example, json, longpole, skip};

/// `longpole open` on a store, until it is dropped.
struct Page {
    process: Child,
    url: String,
}

impl Page {
    fn open(store: &Path) -> Page {
        let mut process = longpole(store).args(["open", "last", "--no-browser"]).stdout(Stdio::piped()).spawn().unwrap();
        let line = BufReader::new(process.stdout.take().unwrap()).lines().next().expect("`open` prints its address").unwrap();
        let url =
            line.split_whitespace().find(|word| word.starts_with("http://127.0.0.1:")).unwrap_or_else(|| panic!("no address in {line:?}"));
        Page { url: url.to_owned(), process }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A browser for the story, or a noted skip.
fn chromium(story: &str) -> Option<PathBuf> {
    let there = std::env::var_os("LONGPOLE_CHROMIUM").map(PathBuf::from);
    if there.is_none() {
        skip(story, "no LONGPOLE_CHROMIUM; `cargo xtask test` finds or installs one");
    }
    there
}

/// Lets a story of `web/stories` drive the browser over a store, and returns what it read.
#[track_caller]
fn told(story: &str, store: &Path, sandbox: &Sandbox, chromium: &Path) -> String {
    let page = Page::open(store);
    told_at(story, &page.url, &[], sandbox, chromium)
}

/// The same over a page that is there, with more arguments.
#[track_caller]
fn told_at(story: &str, url: &str, arguments: &[&str], sandbox: &Sandbox, chromium: &Path) -> String {
    let told = Command::new("node")
        .arg(format!("stories/{story}.mjs"))
        .arg(url)
        .arg(sandbox.path("pictures"))
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web"))
        .env("LONGPOLE_CHROMIUM", chromium)
        .output()
        .unwrap();
    assert!(told.status.success(), "{}{}", String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    String::from_utf8(told.stdout).unwrap()
}

#[test]
fn the_pole_its_function_and_its_spans_in_a_real_browser() {
    let Some(chromium) = chromium("the page in a real browser") else { return };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--summary", "none", "--"]).arg(example("deploy")).stdout(Stdio::null()).status().unwrap();
    assert!(run.success());
    told("find-the-long-pole", &store, &sandbox, &chromium);
    told("see-who-was-busy", &store, &sandbox, &chromium);
    told("fold-foreign-frames", &store, &sandbox, &chromium);
    told("see-one-service", &store, &sandbox, &chromium);
    let waited: Value = serde_json::from_str(&told("see-what-it-waited-for", &store, &sandbox, &chromium)).unwrap();
    assert_eq!(waited["function"], "deploy_example::state::StateFile::record", "{waited}");
}

/// A step that sleeps longer the second time.
#[test]
fn what_made_a_command_slower_in_a_real_browser() {
    let Some(chromium) = chromium("the comparison in a real browser") else { return };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let steps = sandbox.path("steps.sh");
    let exec = env!("CARGO_BIN_EXE_longpole");
    for millis in [50, 350] {
        let script = format!("{exec} exec -s build -n compile -- sleep 0.1; {exec} exec -s build -n link -- sleep 0.{millis:03}\n");
        std::fs::write(&steps, script).unwrap();
        assert!(longpole(&store).args(["run", "--summary", "none", "--", "sh"]).arg(&steps).status().unwrap().success());
    }
    let read: Value = serde_json::from_str(&told("compare-two-runs", &store, &sandbox, &chromium)).unwrap();
    assert_eq!(read["before"], "r1");
    assert!(["link", "sleep"].contains(&read["name"].as_str().unwrap()), "{read}");
    // The two steps sleep for 0.1 s and 0.35 s, one after the other.
    let both: Value = serde_json::from_str(&told("see-what-two-poles-save", &store, &sandbox, &chromium)).unwrap();
    let saves = |both: &Value| both["saves_nanos"][0].as_i64().unwrap();
    assert!((450_000_000..both["wall_nanos"].as_i64().unwrap()).contains(&saves(&both)), "{both}");
    let printed = json(longpole(&store).args(["poles", "r2", "--without", "p1,p2", "--format", "json"]));
    assert_eq!(saves(&printed), saves(&both));
}

/// Spans of Pulumi in OTLP JSON lines: a plug-in is started, then three resources are created one after the other, the database the
/// longest.
fn deployment() -> String {
    let mut out = String::new();
    let mut span = |id: u64, parent: u64, service: &str, name: &str, millis: (u64, u64), urn: &str| {
        let attribute = |key: &str, value: &str| format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#);
        let (parent, urn) = (
            if parent == 0 { String::new() } else { format!(r#","parentSpanId":"{parent:016x}""#) },
            if urn.is_empty() { String::new() } else { attribute("pulumi.resource.urn", &format!("urn:pulumi:dev::shop::{urn}")) },
        );
        let at = |millis: u64| 1_767_225_600_000_000_000 + millis * 1_000_000;
        writeln!(
            out,
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{}]}},"scopeSpans":[{{"scope":{{"name":"t"}},"spans":[{{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"{id:016x}"{parent},"name":"{name}","kind":3,"startTimeUnixNano":"{}","endTimeUnixNano":"{}","attributes":[{urn}],"status":{{}}}}]}}]}}]}}"#,
            attribute("service.name", service),
            at(millis.0),
            at(millis.1)
        )
        .unwrap();
    };
    span(1, 0, "pulumi-cli", "pulumi", (0, 4000), "");
    span(2, 1, "pulumi-cli", "newPlugin", (10, 300), "");
    let resources = [
        ("aws:ec2/vpc:Vpc::network", 320, 900),
        ("aws:rds/instance:Instance::orders-primary", 920, 3500),
        ("aws:ecs/service:Service::shop", 3520, 3900),
    ];
    for (id, (urn, start, end)) in (10..).step_by(10).zip(resources) {
        span(id, 1, "pulumi-cli", "pulumirpc.ResourceMonitor/RegisterResource", (start, end), urn);
        span(id + 1, id, "pulumi-resource-aws", "pulumirpc.ResourceProvider/Create", (start + 5, end - 5), urn);
    }
    out
}

#[test]
fn a_deployment_and_its_resources_in_a_real_browser() {
    let Some(chromium) = chromium("a deployment in a real browser") else { return };
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let file = sandbox.path("a-folder-whose-name-is-far-too-long-to-be-read-at-the-head-of-a-page/up.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, deployment()).unwrap();
    // What the real Pulumi exported, and one whose resources are known.
    let real = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/pulumi/traces.json");
    assert!(longpole(&store).arg("import").arg(real).arg(&file).stdout(Stdio::null()).status().unwrap().success());
    let poles = json(longpole(&store).args(["poles", "r2", "--format", "json"]));
    assert_eq!(poles["poles"][0]["context"], "aws:rds/instance:Instance orders-primary", "{poles}");

    let told = told("read-a-deployment", &store, &sandbox, &chromium);
    let told: Vec<Value> = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(told.iter().map(|read| read["recording"].as_str().unwrap()).collect::<Vec<_>>(), ["r2", "r1"]);
    assert_eq!(told[0]["resource"], "aws:rds/instance:Instance orders-primary");
    for read in &told {
        let answer = longpole(&store).args(["show", read["recording"].as_str().unwrap()]).output().unwrap();
        let answer = String::from_utf8(answer.stdout).unwrap();
        let line = answer.lines().find_map(|line| line.strip_prefix("pulumi ")).unwrap_or_else(|| panic!("no split in\n{answer}"));
        let words: Vec<&str> = line.trim().split("  ").map(|part| part.rsplit_once(' ').unwrap().0).collect();
        let shown: Vec<String> = read["parts"].as_array().unwrap().iter().map(|part| part.as_str().unwrap().replace('’', "'")).collect();
        assert_eq!(shown, words, "page and terminal split the deployment differently:\n{answer}");
    }
}

#[test]
fn a_map_of_services_in_a_real_browser() {
    let Some(chromium) = chromium("a map of services in a real browser") else { return };
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("pictures")).unwrap();
    let served = Served::start(&sandbox.path("store"));
    let at = |port: &str| format!("http://127.0.0.1:{}", served.port(port));
    let map: Value = serde_json::from_str(&told_at("see-who-calls-whom", &at("page"), &[&at("otlp-http")], &sandbox, &chromium)).unwrap();
    assert_eq!((&map["traces"], map["services"].as_array().unwrap().len()), (&Value::from(60), 8), "{map}");
    served.stop();
}

#[test]
fn what_a_service_computes_in_a_real_browser() {
    let Some(chromium) = chromium("what a service computes in a real browser") else { return };
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("pictures")).unwrap();
    let served = Served::start(&sandbox.path("store"));
    let at = |port: &str| format!("http://127.0.0.1:{}", served.port(port));
    let told = told_at("see-what-a-service-computes", &at("page"), &[&at("pyroscope")], &sandbox, &chromium);
    let read: Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_eq!(read["answer"], "cart used 3.96s of CPU time in the last hour; 58% of it in main.parseRules.", "{read}");
    // The page says where profiles go.
    assert_eq!(served.jaeger("/api/server")["pyroscope_port"], Value::from(served.port("pyroscope")));
    served.stop();
}

#[test]
fn the_slow_checkout_among_100_000_traces_in_a_real_browser() {
    let Some(chromium) = chromium("the slow checkout among 100,000 traces in a real browser") else { return };
    let sandbox = Sandbox::new();
    std::fs::create_dir_all(sandbox.path("pictures")).unwrap();
    let served = Served::start(&sandbox.path("store"));
    let at = |port: &str| format!("http://127.0.0.1:{}", served.port(port));
    let read: Value =
        serde_json::from_str(&told_at("find-the-slow-checkout", &at("page"), &[&at("otlp-http")], &sandbox, &chromium)).unwrap();
    assert_eq!(read, serde_json::json!({ "kept": "r1", "dropped": "r2" }));
    // A file is called by its name, and a kept trace has a tag: retention leaves it alone.
    let recordings = served.jaeger("/api/recordings");
    assert_eq!(recordings["recordings"][0]["command"], serde_json::json!(["import", "from a colleague.json"]), "{recordings}");
    let tag = recordings["recordings"][1]["tags"][0].as_str().unwrap_or_default();
    assert!(tag.starts_with("trace-0000") && tag.len() == 38, "{recordings}");
    // Page by page a client gets each of them once.
    let (mut ids, mut after) = (HashSet::new(), String::new());
    loop {
        let page = served.jaeger(&format!("/longpole/v1/traces?limit=5000{after}"));
        for trace in page["traces"].as_array().unwrap() {
            assert!(ids.insert(trace["trace_id"].as_str().unwrap().to_owned()), "{trace} came twice");
        }
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(ids.len(), 100_000);
    // Keeping it again makes no second one.
    let again = http::send(served.port("page"), "PUT", &format!("/longpole/v1/traces/{}/recording", &tag[6..]), &[], "").unwrap();
    assert_eq!((again.status, served.jaeger("/api/recordings")["recordings"].as_array().map(Vec::len)), (201, Some(2)), "{}", again.body);
    served.stop();
}

#[test]
fn the_page_answers_only_to_its_own_address() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    assert!(longpole(&store).args(["run", "--summary", "none", "--", "true"]).status().unwrap().success());
    let page = Page::open(&store);
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let (address, token) = page.url.split_once("?token=").expect("the address carries a token");
    let origin = address.split("/r/").next().expect("a split has a first part");
    let api = format!("{origin}/api/recordings");
    assert_eq!(agent.get(&api).call().unwrap().status(), 401);
    assert_eq!(agent.get(format!("{api}?token=0{}", &token[1..])).call().unwrap().status(), if token.starts_with('0') { 200 } else { 401 });
    assert_eq!(agent.get(format!("{api}?token={token}")).call().unwrap().status(), 200);
    assert_eq!(agent.get(format!("{api}?token={token}")).header("host", "evil.example").call().unwrap().status(), 403);
}

#[test]
fn a_link_of_yesterday_opens_today_and_the_first_page_needs_no_recording() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let parts = |page: &Page| {
        let (address, token) = page.url.split_once("?token=").expect("the address carries a token");
        (address.to_owned(), token.to_owned())
    };
    let page = Page::open(&store);
    let (address, token) = parts(&page);
    assert_eq!(address.matches('/').count(), 3, "the list, not a recording: {address}");
    assert_eq!(agent.get(&page.url).call().unwrap().status(), 200);
    drop(page);
    assert!(longpole(&store).args(["run", "--summary", "none", "--", "true"]).status().unwrap().success());
    let (address, again) = parts(&Page::open(&store));
    assert!(address.ends_with("/r/r1"), "{address}");
    assert_eq!(again, token, "the token is kept for its user");
    let kept = std::fs::metadata(store.join("cache/page-token")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&kept.permissions()) & 0o777, 0o600);
}

#[test]
fn text_shows_the_program_and_json_its_path() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let program = sandbox.path("a-folder-whose-name-is-far-too-long-for-a-line").join("deploy");
    std::fs::create_dir_all(program.parent().unwrap()).unwrap();
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = longpole(&store).args(["run", "--no-profile", "--"]).arg(&program).arg("--x").output().unwrap();
    assert!(run.status.success());
    let text = |arguments: &[&str]| String::from_utf8(longpole(&store).args(arguments).output().unwrap().stdout).unwrap();
    for said in [String::from_utf8(run.stderr).unwrap(), text(&["show"]), text(&["ls"])] {
        let line = said.lines().find(|line| line.contains("r1")).unwrap_or_else(|| panic!("nothing of r1 in {said}"));
        // A list has nothing behind the command if there is no answer.
        assert!(format!("{line}  ").contains("  deploy --x  ") && !line.contains("a-folder"), "{said}");
    }
    let whole = program.to_string_lossy();
    assert_eq!(json(longpole(&store).args(["show", "--format", "json"]))["command"][0], *whole);
    assert_eq!(json(longpole(&store).args(["ls", "--format", "json"]))["recordings"][0]["command"][0], *whole);
}
