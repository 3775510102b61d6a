//! Story: somebody knows the names of her own functions and of her operations, and asks about them by name, or by file and line.
//! Guarantees: a function that only ever waited is found, with the lines at which it waits; its source stands beside the times of its
//! lines and below its head, and is reported as changed if it was; lists name what people wrote and not what starts
//! it; several spans of a name are answered together; a name that fits several things is answered by what fits; a program that was given
//! as text does not fill a list.

use std::path::Path;
use std::process::Stdio;

use crate::see_the_code::pythons;
use crate::support::{Sandbox, can_sample, json, longpole, skip};

/// Two threads work and wait on two lines; `dumps` is a name that the standard library has as well.
const PROGRAM: &str = r"
import json, threading, time

def nap(long):
    if long:
        time.sleep(0.3)
    else:
        time.sleep(0.1)

def burn(until):
    x = 0
    while time.thread_time() < until:
        x = (x * 31 + 7) % 1000003

def dumps():
    return json.dumps(list(range(9)))

def work():
    burn(time.thread_time() + 0.1)
    nap(True)
    nap(False)
    dumps()

thread = threading.Thread(target=work)
thread.start()
work()
thread.join()
";

fn line_of(text: &str) -> u64 {
    PROGRAM.lines().position(|line| line.contains(text)).unwrap() as u64 + 1
}

fn text(store: &Path, arguments: &[&str]) -> String {
    let out = longpole(store).args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_function_is_found_by_name_with_waits_and_source() {
    const STORY: &str = "a function is found by its name";
    let Some(python) = pythons().into_iter().next() else { return skip(STORY, "there is no Python from 3.8 to 3.13") };
    if !can_sample(STORY) {
        return;
    }
    let sandbox = Sandbox::new();
    let (store, file) = (sandbox.path("store"), sandbox.path("program.py"));
    std::fs::write(&file, PROGRAM).unwrap();
    let run = longpole(&store).args(["run", "--"]).arg(&python).arg(&file).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));

    let frame = json(longpole(&store).args(["frame", "nap", "--format", "json"]));
    let waited = frame["waited_nanos"].as_f64().unwrap();
    assert!((0.7e9..1.2e9).contains(&waited), "two threads wait 0.4 s each: {frame}");
    let wait = &frame["waited_for"][0];
    assert_eq!((&wait["kind"], &wait["function"], &wait["threads"]), (&"sleep".into(), &"nap".into(), &2.into()), "{frame}");
    let lines: Vec<u64> = wait["places"].as_array().unwrap().iter().map(|place| place["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [line_of("sleep(0.3)"), line_of("sleep(0.1)")], "{frame}");

    let place = format!("program.py:{}", line_of("sleep(0.1)"));
    let at = json(longpole(&store).args(["frame", &place, "--format", "json"]));
    assert_eq!(at["handle"], frame["handle"], "{place}");
    let asked = longpole(&store).args(["span", "nap"]).output().unwrap();
    let hint = format!("frame {}", frame["handle"].as_str().unwrap());
    assert!(String::from_utf8_lossy(&asked.stderr).contains(&hint), "a function is no span: {asked:?}");

    let source = json(longpole(&store).args(["frame", "nap", "--source", "--source-text", "--format", "json"]));
    // Two lines stand above the first one with a sample or a wait; a sample may hit any line of the function.
    let lines = source["lines"].as_array().unwrap();
    let number = |line: &serde_json::Value| line["line"].as_u64().unwrap();
    let has_time = |line: &&serde_json::Value| ["total_nanos", "waited_nanos"].iter().any(|key| line[*key].as_u64().unwrap() > 0);
    assert_eq!(number(&lines[0]) + 2, number(lines.iter().find(has_time).unwrap()), "{source}");
    let def = lines.iter().find(|line| number(line) == line_of("def nap"));
    assert_eq!(def.and_then(|line| line["text"].as_str()), Some("def nap(long):"), "{source}");
    assert_eq!((&source["state"], source["path"].as_str()), (&"read".into(), file.to_str()), "{source}");
    let hot = |line: &&serde_json::Value| line["waited_nanos"].as_u64().unwrap() > 0;
    let texts: Vec<&str> =
        source["lines"].as_array().unwrap().iter().filter(hot).map(|line| line["text"].as_str().unwrap().trim()).collect();
    assert_eq!(texts, ["time.sleep(0.3)", "time.sleep(0.1)"], "{source}");

    let waits = json(longpole(&store).args(["top", "--off-cpu", "--format", "json"]));
    let functions = waits["functions"].as_array().unwrap();
    let nap = functions.iter().find(|function| function["function"] == "nap").unwrap_or_else(|| panic!("no nap in {waits}"));
    assert!(nap["self_nanos"].as_f64().unwrap() > 0.7e9, "{nap}");
    let total = json(longpole(&store).args(["top", "--total", "--limit", "0", "--format", "json"]));
    let names = |view: &serde_json::Value| -> Vec<String> {
        view["functions"].as_array().unwrap().iter().map(|function| function["function"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names(&total)[..3].contains(&"work".to_owned()), "{:?}", names(&total));
    assert!(total["hidden"].as_u64().unwrap() > 3, "{}", total["hidden"]);
    let all = json(longpole(&store).args(["top", "--total", "--limit", "0", "--all-functions", "--format", "json"]));
    assert_eq!((all["hidden"].as_u64(), names(&all).len()), (Some(0), names(&total).len() + total["hidden"].as_u64().unwrap() as usize));

    // The standard library has a `dumps` as well: what people wrote is meant.
    let written = text(&store, &["frame", "burn", "--source"]);
    assert!(written.contains("x = (x * 31 + 7) % 1000003"), "{written}");
    std::fs::write(&file, "something else\n").unwrap();
    assert!(text(&store, &["frame", "nap", "--source"]).contains("changed after the recording"));
    std::fs::remove_file(&file).unwrap();
    assert!(text(&store, &["frame", "nap", "--source"]).contains("there is no such file on this machine"));

    let nothing = longpole(&store).args(["frame", "no_such_function"]).output().unwrap();
    let said = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(nothing.status.code() == Some(3) && said.contains("there is no function called “no_such_function” in r1"), "{said}");
}

#[test]
fn a_program_given_as_text_is_one_line_in_lists() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let script = "\ntrue a\ttab\ntrue \x1b[31mred\n";
    let run = longpole(&store).args(["run", "--no-profile", "--", "sh", "-c", script]).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(answer.trim_start().starts_with("longpole  r1  sh -c 'true a\\ttab …'  exit 0"), "{answer}");
    let list = text(&store, &["ls"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.contains("sh -c 'true a\\ttab …") && !list.contains('\x1b'), "{list}");
}

#[test]
fn spans_of_a_name_are_shown_together_and_a_single_one_by_itself() {
    let sandbox = Sandbox::new();
    let (store, trace) = (sandbox.path("store"), sandbox.path("naps.json"));
    let span = |id: u32, name: &str, from: u64, to: u64| {
        format!(
            r#"{{"traceId":"000102030405060708090a0b0c0d0e0f","spanId":"{id:016x}","name":"{name}","kind":1,"startTimeUnixNano":"17000000000{from:02}000000","endTimeUnixNano":"17000000000{to:02}000000"}}"#
        )
    };
    let spans = [
        span(1, "nap", 10, 20),
        span(2, "nap", 30, 60),
        span(3, "long nap", 61, 62),
        span(4, "short nap", 63, 64),
        span(5, "Work", 65, 70),
    ];
    let document = format!(r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"scope":{{}},"spans":[{}]}}]}}]}}"#, spans.join(","));
    std::fs::write(&trace, document).unwrap();
    let imported = longpole(&store).arg("import").arg(&trace).output().unwrap();
    assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));

    let view = json(longpole(&store).args(["span", "nap", "--format", "json"]));
    assert_eq!((view["count"].as_u64(), view["durations"]["sum_nanos"].as_u64()), (Some(2), Some(40_000_000)), "{view}");
    assert!(text(&store, &["span", "nap", "r1"]).starts_with("nap ×2"));
    assert!(text(&store, &["span", "r1", "work"]).contains("Work"), "the only name that has it, whatever the case");
    let several = longpole(&store).args(["span", "na"]).output().unwrap();
    let said = String::from_utf8(several.stderr).unwrap();
    assert!(several.status.code() == Some(3) && said.contains("names like it: nap, 'long nap', 'short nap'"), "{said}");
}
