use super::*;
use crate::Recording;
use crate::sample::ContextRecord;

fn check(text: &str) -> Recording {
    let recording = parse(text).unwrap();
    assert_eq!(print(&recording), text, "printed text");
    assert_eq!(parse(&print(&recording)).unwrap(), recording, "read back");
    recording
}

fn refuse(text: &str, expected: &str) {
    assert_eq!(parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn a_run_with_spans_processes_and_samples_is_printed_as_it_was_read() {
    let recording = check(
        "\
run pulumi up  0..120ms
  deploy   1..119ms  engine  pid 1
    web    2..14ms  aws  pid 3
      put  3..4ms  aws
    db     15..98ms  aws  pid -  <- web, put
cron       5..6ms  cron
process cc1  3..50ms  pid 8 under 1
process sh  4ms..  pid 9 under 8 forked
sample 20ms x3 every 1ms pid 3 tid 4 [web] main;handle|inlined;hash@src/hash.rs:12
sample 30ms every 500us pid 8 tid 8 [-] main
",
    );
    assert_eq!(recording.run.mode.as_str(), "user");
    assert_eq!(recording.spans[0].parent_span_id, Some(recording.run.root_span_id));
    assert_eq!(recording.spans[3].links.len(), 2);
    assert_eq!((recording.spans[2].pid, recording.spans[3].pid, recording.spans[4].parent_span_id), (Some(3), None, None));
    assert_eq!(recording.samples.len(), 4);
    let web = &recording.spans[1];
    assert_eq!(recording.samples[0].context, ContextRecord::Span { trace_id: web.trace_id, span_id: web.span_id });
    assert_eq!(recording.locations[1].frames.len(), 2, "an inlined function is a frame of the same location");
    assert_eq!(recording.locations[0].frames[0].line, 12, "the leaf comes first");
}

#[test]
fn orphans_cycles_labels_and_other_traces_have_words() {
    let recording = check(
        "\
a      0..9ms  parent 2
  b    1..8ms
trace 2
lost   2..3ms  parent 99
step   3..4ms  @s4
step   4..5ms  <- s4
\"run\"  5..6us  \"two words\"
",
    );
    assert_eq!(recording.spans[0].parent_span_id, Some(recording.spans[1].span_id));
    assert_eq!(recording.run.root_pid, None);
    assert_eq!(recording.spans[4].links[0].span_id, recording.spans[3].span_id);
    assert_eq!(recording.spans[5].name, "run");
}

#[test]
fn kinds_scopes_and_attributes_have_words() {
    let recording = check(
        "\
run pulumi up  0..9ms
  Create    1..8ms  cli  pid 1  kind client  scope appdash  urn=a::b  deps=[a,b]  none=
    Create  2..7ms  \"x=y\"  kind server
",
    );
    let create = &recording.spans[0];
    assert_eq!((create.kind, create.scope.name.as_str()), (crate::SpanKind::Client, "appdash"));
    assert_eq!((create.attributes.get_str("urn"), create.attributes.get_str("none")), (Some("a::b"), Some("")));
    assert_eq!(recording.spans[1].service_name(), "x=y");
}

#[test]
fn threads_their_times_on_a_cpu_and_their_journals_have_words() {
    let recording = check(
        "\
run x  0..20ms
  GET /picture  1..9ms  web  pid 7
    load        2..4ms  web  @s2
    load        5..6ms  web
thread web  0..20ms  pid 7 tid 7
thread tokio worker  1ms..  pid 7 tid 8
cpu 1ms..3ms pid 7 tid 8 preempted
cpu 4ms..5ms pid 7 tid 7
current 1ms..2ms pid 7 tid 8 GET /picture
current 2ms..4ms pid 7 tid 8 s2
current 4ms..9ms pid 7 tid 8 -
",
    );
    let [first, second, none] = [0, 1, 2].map(|i| recording.current_spans[i].span.map(|(_, span)| span));
    assert_eq!((first, second, none), (Some(recording.spans[0].span_id), Some(recording.spans[1].span_id), None));
    assert_eq!((recording.threads.len(), recording.cpu_slices[0].preempted, recording.cpu_slices[1].preempted), (2, true, false));
    assert_eq!(parse("current 1..2ms -").unwrap().current_spans[0].tid, 1, "the first thread of the run by default");
}

#[test]
fn what_is_not_the_notation_is_refused_with_its_line() {
    refuse("a 0..1ms\nb", "line 2: no times such as 2..14ms in this line");
    refuse("a 0..1ms\n\nb 0..1ms <- c", "line 3: no span is called `c`");
    refuse("  a 0..1ms", "line 1: indented, but nothing above it is indented less");
    refuse("a 3ms..", "line 1: a span needs an end");
    refuse("sample soon main", "line 1: `soon` is not a moment such as 20ms");
    refuse("sample 1ms x9999999 main", "line 1: more than 1000000 samples in one line");
    refuse("process p 1..2ms", "line 1: a process needs a pid");
    refuse("cpu 1ms..", "line 1: no times such as 2..14ms in this line");
    refuse("cpu 1..2ms pid 3 gently", "line 1: `gently` is not said of a time on a CPU");
    refuse("thread t 1..2ms pid 3 tid 4 5", "line 1: `5` is not said of a thread");
    refuse("current 1..2ms pid 3", "line 1: what is current needs a name, or `-`");
    refuse("current 1..2ms pid x web", "line 1: `pid` needs a number");
    refuse("current 1..2ms pid 3 web", "line 1: no span is called `web`");
    refuse("a 0..1ms kind odd", "line 1: `odd` is not the kind of a span");
    refuse("a 0..1ms svc extra", "line 1: `extra` is not said of a span");
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// One line: levels to climb before it, name, start, length, service, pid.
    type Line = (usize, String, i64, i64, String, Option<u32>);

    fn spelled(run: bool, lines: &[Line]) -> String {
        let mut text = if run { "run cmd 0..5ms\n".to_owned() } else { String::new() };
        let mut depth = 0usize;
        for (i, (climb, name, start, length, service, pid)) in lines.iter().enumerate() {
            depth = if i == 0 { 0 } else { (depth + 1).saturating_sub(*climb) };
            let indent = "  ".repeat(depth + usize::from(run));
            let pid = pid.map(|pid| format!(" pid {pid}")).unwrap_or_default();
            text.push_str(&format!("{indent}{name:?} {start}..{}ns {service:?}{pid}\n", start + length));
        }
        text
    }

    proptest! {
        #[test]
        fn printing_then_parsing_gives_the_recording_back(
            run: bool,
            lines in prop::collection::vec((0usize..4, "[a-z<@\\\\\" .0-9-]{1,12}", 0i64..1_000_000_000, 0i64..5_000_000, "[a-z ]{0,6}", prop::option::of(1u32..5)), 1..20),
        ) {
            // Rust's debug escapes of these characters are the notation's.
            let Ok(recording) = parse(&spelled(run, &lines)) else { return Err(TestCaseError::reject("not a text")) };
            let text = print(&recording);
            prop_assert_eq!(&parse(&text).unwrap(), &recording, "{}", text);
            prop_assert_eq!(print(&parse(&text).unwrap()), text);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,80}", more in "[ a-z0-9.\\n\"<@-]{0,120}") {
            let _ = parse(&text);
            let _ = parse(&more);
        }
    }
}
