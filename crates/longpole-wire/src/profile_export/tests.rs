//! A small recording in each format, read back as its readers do.

use std::collections::BTreeMap;

use longpole_model::stack::{LocationKind, Runtime};
use longpole_model::{CpuSlice, Evidence, Monotonic, Recording, SampleLink, Thread, text};
use serde_json::Value as Json;

use super::{ProfileExport, chrome_profile, firefox, folded, pprof, speedscope};
use crate::chrome_trace;
use crate::protobuf::{Reader, Value};

/// Ten samples in `hash`, inlined into `compress`, for a span; one of a script without a span; a wait for a lock, one without a stack.
fn recording() -> Recording {
    let mut recording = text::parse(
        "\
run x 0..100ms
  build 0..60ms svc pid 1
process py 50..90ms pid 7 under 1
sample 1ms x10 pid 1 tid 1 [build] main;compress|hash@src/hash.rs:12
sample 60ms pid 7 tid 7 [-] script
wait 20..40ms pid 1 tid 1 lock main;lock_it
wait 70..80ms pid 7 tid 7 sleep ?
",
    )
    .unwrap();
    let at = |millis: u64| Monotonic(text::ORIGIN_MONOTONIC.0 + millis * 1_000_000);
    let thread = |pid, tid, name: &str| Thread { pid, tid, name: name.to_owned(), start: at(0), end: None, totals: None, ident: None };
    recording.threads = vec![thread(1, 1, "main"), thread(7, 7, "py"), thread(7, 8, "never")];
    recording.cpu_slices = vec![CpuSlice { pid: 1, tid: 1, start: at(0), end: at(20), preempted: false }];
    let span = &recording.spans[0];
    let link = SampleLink { span: Some((span.trace_id, span.span_id)), evidence: Evidence::Record };
    let none = SampleLink { span: None, evidence: Evidence::None };
    recording.sample_links = recording.samples.iter().map(|sample| if sample.pid == 1 { link } else { none }).collect();
    recording.wait_links = vec![link, none];
    let script = recording.locations.iter_mut().find(|location| location.frames[0].function == "script").unwrap();
    script.kind = LocationKind::Named { runtime: Runtime::Python, address: None };
    recording.mappings[0].build_id = (1..=20).collect();
    recording
}

fn parts<'a>(bytes: &'a [u8], wanted: u32) -> Vec<Value<'a>> {
    let mut reader = Reader::new(bytes);
    let mut found = Vec::new();
    while let Some(field) = reader.next().unwrap() {
        if field.number == wanted {
            found.push(field.value);
        }
    }
    found
}

fn messages(bytes: &[u8], wanted: u32) -> Vec<&[u8]> {
    parts(bytes, wanted)
        .into_iter()
        .map(|value| if let Value::Bytes(reader) = value { reader.bytes() } else { panic!("{value:?}") })
        .collect()
}

fn numbers(bytes: &[u8], wanted: u32) -> Vec<u64> {
    parts(bytes, wanted).into_iter().map(|value| if let Value::Varint(number) = value { number } else { panic!("{value:?}") }).collect()
}

fn number(bytes: &[u8], wanted: u32) -> u64 {
    numbers(bytes, wanted).first().copied().unwrap_or(0)
}

/// The samples of a profile: functions leaf first, values, labels.
fn samples_of(profile: &[u8]) -> Vec<String> {
    let texts: Vec<String> = messages(profile, 6).into_iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect();
    let text = |number: u64| texts[number as usize].as_str();
    let by_id = |field| messages(profile, field).into_iter().map(|bytes| (number(bytes, 1), bytes)).collect::<BTreeMap<_, _>>();
    let (mappings, locations, functions) = (by_id(3), by_id(4), by_id(5));
    let line = |line: &[u8]| {
        let function = functions[&number(line, 1)];
        let file = text(number(function, 4));
        let place = if file.is_empty() { String::new() } else { format!("@{file}:{}", number(line, 2)) };
        format!("{}{place}", text(number(function, 2)))
    };
    let location = |id: &u64| {
        let location = locations[id];
        let lines: Vec<String> = messages(location, 4).into_iter().map(line).collect();
        let mapping = mappings.get(&number(location, 2)).map_or("-", |mapping| text(number(mapping, 5)));
        format!("{mapping}:{}", lines.join("<"))
    };
    let label = |label: &[u8]| match number(label, 3) {
        0 => format!("{}={}", text(number(label, 1)), text(number(label, 2))),
        number_ => format!("{}={number_}", text(number(label, 1))),
    };
    let sample = |sample: &[u8]| {
        let stack: Vec<String> = numbers(sample, 1).iter().map(location).collect();
        let labels: Vec<String> = messages(sample, 3).into_iter().map(label).collect();
        format!("{} {:?} {}", stack.join(" "), numbers(sample, 2), labels.join(" "))
    };
    messages(profile, 2).into_iter().map(sample).collect()
}

#[test]
fn pprof_holds_stacks_sums_and_whose_they_are() {
    let recording = recording();
    let mut export = ProfileExport::new(&recording);
    export.is_idle = vec![false, true].into();
    export.notes = vec!["3 × samples_lost".to_owned()];
    let (profile, losses) = pprof::encode(&export);
    let mapping = &recording.mappings[0].path;
    let span = &recording.spans[0];
    let ids = format!("trace_id={} span_id={} span_name=build service_name=svc span_evidence=record", span.trace_id, span.span_id);
    assert_eq!(
        samples_of(&profile),
        [
            format!("{mapping}:hash@src/hash.rs:12<compress {mapping}:main [10, 10000000, 0, 0] process=x thread=main {ids} pid=1 tid=1"),
            "[python]:script [1, 1000000, 0, 0] process=py thread=py pid=7 tid=7".to_owned(),
            format!("{mapping}:lock_it {mapping}:main [0, 0, 1, 20000000] process=x thread=main {ids} wait=lock pid=1 tid=1"),
            "-:[stack not seen] [0, 0, 1, 10000000] process=py thread=py wait=sleep idle=true pid=7 tid=7".to_owned(),
        ]
    );
    let texts: Vec<&str> = messages(&profile, 6).into_iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    let mapping = messages(&profile, 3)[0];
    assert_eq!(texts[number(mapping, 6) as usize], "0102030405060708090a0b0c0d0e0f1011121314");
    assert_eq!((7..=10).map(|field| number(mapping, field)).collect::<Vec<_>>(), [1, 1, 1, 1]);
    assert_eq!(texts[number(&profile, 14) as usize], "cpu");
    let comments: Vec<&str> = numbers(&profile, 13).into_iter().map(|text| texts[text as usize]).collect();
    assert!(comments.contains(&"missing: 3 × samples_lost"), "{comments:?}");
    // What it has no place for: switches, times, spans.
    assert_eq!(losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [1, 13, 1]);
}

fn firefox_of(export: &ProfileExport<'_>) -> Json {
    let mut out = Vec::new();
    firefox::encode(export, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// The functions of a stack of a Firefox profile, root first, with lines.
fn firefox_stack(profile: &Json, stack: &Json) -> String {
    let shared = &profile["shared"];
    let at = |table: &str, column: &str, row: u64| shared[table][column][row as usize].clone();
    let mut names = Vec::new();
    let mut stack = stack.as_u64();
    while let Some(node) = stack {
        let frame = at("stackTable", "frame", node).as_u64().unwrap();
        let function = at("frameTable", "func", frame).as_u64().unwrap();
        let name = shared["stringArray"][at("funcTable", "name", function).as_u64().unwrap() as usize].as_str().unwrap().to_owned();
        let line = at("frameTable", "line", frame).as_u64().map(|line| format!(":{line}")).unwrap_or_default();
        let depth = at("frameTable", "inlineDepth", frame).as_u64().unwrap();
        names.push(format!("{name}{line}{}", if depth > 0 { "'" } else { "" }));
        stack = at("stackTable", "prefix", node).as_u64();
    }
    names.reverse();
    names.join(";")
}

#[test]
fn firefox_has_threads_with_samples_waits_and_spans() {
    let recording = recording();
    let mut export = ProfileExport::new(&recording);
    export.is_idle = vec![false, true].into();
    let profile = firefox_of(&export);
    for table in ["stackTable", "frameTable", "funcTable", "resourceTable", "sources"] {
        let columns = profile["shared"][table].as_object().unwrap();
        let length = columns["length"].as_u64().unwrap() as usize;
        assert!(columns.iter().all(|(name, column)| name == "length" || column.as_array().unwrap().len() == length), "{table}");
    }
    let rows = |thread: &Json| -> Vec<String> {
        let samples = &thread["samples"];
        (0..samples["length"].as_u64().unwrap() as usize)
            .map(|row| {
                let stack = firefox_stack(&profile, &samples["stack"][row]);
                format!("{stack} {} {} {}", samples["time"][row], samples["weight"][row], samples["threadCPUDelta"][row])
            })
            .collect()
    };
    let threads = profile["threads"].as_array().unwrap();
    let about: Vec<String> = threads.iter().map(|it| format!("{}/{} {} {}", it["pid"], it["tid"], it["processName"], it["name"])).collect();
    assert_eq!(about, [r#""1"/1 "x" "main""#, r#""7"/7 "py" "py""#]);
    let main = rows(&threads[0]);
    // On a CPU without a break until the wait begins, as the switches say.
    assert_eq!(main[0], "main;compress;hash:12' 1.0 1.0 1000000");
    assert_eq!(main[10..], ["main;lock_it;[lock] 20.0 20.0 10000000", "main;lock_it;[lock] 40.0 0.0 0"]);
    assert_eq!(rows(&threads[1])[1], "[stack not seen];[sleep] 70.0 10.0 0");
    let category = |thread: &Json, row: usize| {
        let stack = thread["samples"]["stack"][row].as_u64().unwrap() as usize;
        let frame = profile["shared"]["stackTable"]["frame"][stack].as_u64().unwrap() as usize;
        let category = profile["shared"]["frameTable"]["category"][frame].as_u64().unwrap() as usize;
        profile["meta"]["categories"][category]["name"].clone()
    };
    assert_eq!([category(&threads[0], 0), category(&threads[0], 10)], ["User", "Blocked"]);
    assert_eq!([category(&threads[1], 0), category(&threads[1], 1)], ["Python", "Idle"]);
    let markers = &threads[0]["markers"];
    let name = markers["name"][0].as_u64().unwrap() as usize;
    assert_eq!(profile["shared"]["stringArray"][name], "build");
    assert_eq!((&markers["startTime"][0], &markers["endTime"][0], &markers["phase"][0]), (&0.0.into(), &60.0.into(), &1.into()));
    assert_eq!(markers["data"][0]["span_id"], recording.spans[0].span_id.to_string());
    let lib = &profile["libs"][0];
    assert_eq!(lib["breakpadId"], "0403020106050807090A0B0C0D0E0F100");
    assert_eq!(lib["codeId"], "0102030405060708090a0b0c0d0e0f1011121314");
}

#[test]
fn a_process_id_that_was_used_twice_is_two_processes() {
    let recording = text::parse(
        "run x 0..9ms\nprocess a 0..3ms pid 7 under 1\nprocess b 5..8ms pid 7 under 1\nsample 1ms pid 7 main\nsample 6ms pid 7 main\n",
    )
    .unwrap();
    let profile = firefox_of(&ProfileExport::new(&recording));
    let about: Vec<String> =
        profile["threads"].as_array().unwrap().iter().map(|it| format!("{} {}", it["pid"], it["processName"])).collect();
    assert_eq!(about, [r#""7" "a""#, r#""7.2" "b""#]);
}

#[test]
fn speedscope_has_a_profile_for_each_thread() {
    let recording = recording();
    let mut out = Vec::new();
    let losses = speedscope::encode(&ProfileExport::new(&recording), &mut out).unwrap();
    let file: Json = serde_json::from_slice(&out).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    let profiles: Vec<String> = file["profiles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|profile| {
            let name = |frame: &Json| frames[frame.as_u64().unwrap() as usize]["name"].as_str().unwrap().to_owned();
            let stack = |stack: &Json| stack.as_array().unwrap().iter().map(name).collect::<Vec<_>>().join(";");
            let last = profile["samples"].as_array().unwrap().last().unwrap();
            let weights = profile["weights"].as_array().unwrap();
            format!("{} {} {}: {} {}", profile["name"], weights.len(), profile["endValue"], stack(last), weights.last().unwrap())
        })
        .collect();
    assert_eq!(
        profiles,
        [
            r#""x (1) › main (1)" 11 30000000: main;lock_it;[lock] 20000000"#,
            r#""py (7) › py (7)" 2 11000000: [stack not seen];[sleep] 10000000"#
        ]
    );
    assert!(losses.iter().any(|loss| loss.count == 1 && loss.detail.starts_with("threads without")), "{losses:?}");
}

#[test]
fn folded_stacks_begin_with_their_process() {
    let mut recording = recording();
    recording.processes[0].name = "x;y".to_owned();
    let mut out = Vec::new();
    let losses = folded::encode(&ProfileExport::new(&recording), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "py;script 1000000\nx:y;main;compress;hash 10000000\nx:y;main;lock_it 20000000\n");
    assert_eq!(losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [1, 1, 12]);
}

#[test]
fn a_chrome_trace_has_threads_beside_its_spans() {
    let recording = recording();
    let (bytes, _) = chrome_trace::encode(&ProfileExport::new(&recording));
    let file: Json = serde_json::from_slice(&bytes).unwrap();
    let events = file["traceEvents"].as_array().unwrap();
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
    let names: Vec<&Json> = events.iter().filter(|event| event["ph"] == "M").map(|event| &event["args"]["name"]).collect();
    assert_eq!(names, ["svc (1)", "py (7)", "main (1)", "py (7)"]);
    let wait = named("lock")[0];
    assert_eq!(
        (&wait["ts"], &wait["dur"], &wait["args"]["stack"]),
        (&20000.0.into(), &20000.0.into(), &serde_json::json!(["lock_it", "main"]))
    );
    let (span, profile, chunk) = (named("build")[0], named("Profile")[0], named("ProfileChunk")[0]);
    assert_eq!((&span["pid"], &profile["pid"], &profile["args"]["data"]["startTime"]), (&1.into(), &1.into(), &1000.into()));
    assert_ne!(span["tid"], profile["tid"]);
    let data = &chunk["args"]["data"];
    // Ten samples, and the end of the last.
    assert_eq!(data["timeDeltas"], serde_json::json!([0, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000]));
    let nodes = data["cpuProfile"]["nodes"].as_array().unwrap();
    let names: Vec<&Json> = nodes.iter().map(|node| &node["callFrame"]["functionName"]).collect();
    assert_eq!(names, ["(root)", "(idle)", "main", "compress", "hash"]);
    assert_eq!(data["cpuProfile"]["samples"].as_array().unwrap()[9..], [5, 2]);
}

/// A stack of 4,096 frames with a number of samples, all of one moment, and waits of 1 ms.
fn deep(samples: usize, waits: u64) -> Recording {
    let mut recording = text::parse(
        "\
run x 0..100ms
sample 1ms pid 1 tid 1 [-] a;b
wait 2..3ms pid 1 tid 1 lock a;b
",
    )
    .unwrap();
    let stack = recording.samples[0].stack;
    let places = recording.stacks[stack.0 as usize].locations.clone();
    recording.stacks[stack.0 as usize].locations = places.iter().copied().cycle().take(4096).collect();
    recording.samples = vec![recording.samples[0]; samples];
    recording.waits = (0..waits).map(|_| recording.waits[0].clone()).collect();
    recording.waits.iter_mut().for_each(|wait| wait.stack = Some(stack));
    recording
}

/// 15 KB of folded stacks that say a million took 16 GB and minutes, 4,096 frames for each.
#[test]
fn many_samples_of_one_deep_stack_cost_no_more_than_their_number() {
    let recording = deep(300_000, 2_000);
    let export = ProfileExport::new(&recording);
    let mut out = Vec::new();
    let losses = speedscope::encode(&export, &mut out).unwrap();
    let profile = &serde_json::from_slice::<Json>(&out).unwrap()["profiles"][0];
    assert_eq!(profile["samples"].as_array().unwrap().len(), 1 + 2_000, "samples of one moment are one");
    assert_eq!((&profile["weights"][0], &profile["endValue"]), (&300_000_000_000u64.into(), &302_000_000_000u64.into()));
    assert!(!losses.iter().any(|loss| loss.detail.contains("after the first")), "{losses:?}");
    assert!(chrome_trace::encode(&export).0.len() < 100_000_000);
    let mut out = Vec::new();
    firefox::encode(&export, &mut out).unwrap();
    assert!(out.len() < 50_000_000);
    assert_eq!(samples_of(&pprof::encode(&export).0).len(), 2);
}

/// A file of others may say so. For each sample all processes and threads of its ids were looked through.
#[test]
fn many_processes_and_threads_of_one_id_are_each_a_lane() {
    let mut recording = text::parse("run x 0..100ms\nprocess a 1..90ms pid 7 under 1\nsample 1ms pid 7 tid 7 [-] main\n").unwrap();
    let (process, sample) = (recording.processes.last().unwrap().clone(), recording.samples[0]);
    let start = |number: u64| Monotonic(process.start.0 + number);
    let count = 100_000;
    recording.processes = (0..count).map(|number| longpole_model::Process { start: start(number), ..process.clone() }).collect();
    let thread = |number| Thread { pid: 7, tid: 7, name: "a".to_owned(), start: start(number), end: None, totals: None, ident: None };
    recording.threads = (0..count).map(thread).collect();
    recording.samples = (0..count).map(|number| longpole_model::Sample { time: start(number), ..sample }).collect();
    recording.sample_links.clear();
    let began = std::time::Instant::now();
    let export = ProfileExport::new(&recording);
    let tracks = super::tracks::Tracks::new(&export);
    let ids = tracks.process_ids();
    assert_eq!((ids.len() as u64, ids[0].as_str(), ids.last().unwrap().as_str()), (count, "7", "7.100000"));
    assert!(chrome_trace::encode(&export).0.len() > 1_000_000);
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}

#[test]
fn what_stands_behind_the_room_of_a_file_is_counted() {
    let recording = deep(10, 10);
    let export = ProfileExport::new(&recording);
    let left_out = |losses: &[longpole_model::Loss]| -> Vec<u64> {
        losses.iter().filter(|loss| loss.detail.contains("after the first")).map(|loss| loss.count).collect()
    };
    let mut out = Vec::new();
    // The samples, and three waits with what they wait for.
    let losses = speedscope::encode_up_to(4096 + 3 * 4097, &export, &mut out).unwrap();
    assert_eq!(left_out(&losses), [7]);
    let profile = &serde_json::from_slice::<Json>(&out).unwrap()["profiles"][0];
    assert_eq!((profile["samples"].as_array().unwrap().len(), &profile["endValue"]), (4, &13_000_000.into()));
    let (profile, losses) = pprof::encode_up_to(4096, &export);
    assert_eq!((samples_of(&profile).len(), left_out(&losses)), (1, vec![1]));
    for (room, lines, expected) in [((4096, 1 << 20), 0, 1), ((5000, 100), 0, 1), ((5000, 1 << 20), 1, 0)] {
        let mut out = Vec::new();
        let losses = folded::encode_up_to(room, &export, &mut out).unwrap();
        assert_eq!((String::from_utf8(out).unwrap().lines().count(), left_out(&losses).iter().sum()), (lines, expected), "{room:?}");
    }
    // Names of the first wait, and nothing more.
    let mut out = String::from("[0");
    let mut writer = chrome_profile::Writer::with_room_for(1, &export, export.origin());
    for track in &super::tracks::Tracks::new(&export).list {
        out.push(',');
        writer.track(&mut out, track, chrome_profile::TrackPlace { pid: 1, tid: 1 });
    }
    let events: Json = serde_json::from_str(&(out + "]")).unwrap();
    let waits: Vec<&Json> = events.as_array().unwrap().iter().filter(|event| event["cat"] == "wait").collect();
    assert_eq!((waits.len(), waits.iter().filter(|wait| wait["args"]["stack"].is_array()).count()), (10, 1));
    let mut losses = Vec::new();
    writer.lose(&mut losses);
    assert_eq!(left_out(&losses), [10, 9]);
}

#[test]
fn an_address_without_a_name_goes_out_as_its_address() {
    let mut recording = recording();
    for location in &mut recording.locations {
        location.frames.clear();
    }
    let export = ProfileExport::new(&recording);
    let (profile, _) = pprof::encode(&export);
    assert!(samples_of(&profile)[0].contains(":0x"), "{:?}", samples_of(&profile));
    let profile = firefox_of(&export);
    assert!(firefox_stack(&profile, &profile["threads"][0]["samples"]["stack"][0]).starts_with("0x"));
}

#[test]
fn an_empty_recording_is_a_whole_file() {
    let recording = text::parse("run x 0..9ms\n").unwrap();
    let export = ProfileExport::new(&recording);
    assert_eq!(samples_of(&pprof::encode(&export).0), [""; 0]);
    assert_eq!(firefox_of(&export)["threads"], serde_json::json!([]));
}

#[test]
fn folded_stacks_stand_in_the_order_of_their_texts_and_names_that_look_alike_are_one() {
    // Names that begin alike, go on below and above a semicolon, hold one, or are nothing.
    let names = ["a", "a b", "ab", "a:", "a!", "b", "aé", "a,b", "~"];
    let mut text = String::from("run x 0..100ms\nprocess a 0..90ms pid 7 under 1\n");
    for (number, leaf) in names.iter().enumerate() {
        for middle in names {
            text.push_str(&format!("sample {number}ms pid 7 tid 7 [-] a;{middle};{leaf}\nsample {number}ms pid 7 tid 7 [-] {middle}\n"));
        }
    }
    let mut recording = text::parse(&text).unwrap();
    for frame in recording.locations.iter_mut().flat_map(|location| &mut location.frames) {
        // A semicolon is written as a colon.
        frame.function = frame.function.replace(',', ";").replace('~', "").into();
    }
    let mut out = Vec::new();
    folded::encode(&ProfileExport::new(&recording), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let stacks: Vec<&str> = out.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    assert!(stacks.len() > names.len() && stacks.iter().any(|stack| stack.contains("a:b")), "{out}");
    assert!(stacks.windows(2).all(|pair| pair[0] < pair[1]), "{out}");
}
