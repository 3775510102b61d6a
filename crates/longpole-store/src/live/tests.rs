//! Stories of a live store, on real files.

use std::fs;
use std::sync::mpsc;

use longpole_model::{SpanId, TraceId};

use super::*;
use crate::testing::{self, Directory};
use crate::wal::BodyEncoding;

const NOW: Timestamp = Timestamp(1_795_867_200_000_000_000);

/// Bodies are not decoded here: each names the spans that stand for it.
fn body(trace: u8, spans: u8) -> Vec<u8> {
    vec![trace, spans]
}

fn spans_of(body: &[u8]) -> Vec<Span> {
    (1..=body[1]).map(|span| testing::span(body[0], span, span - 1, NOW.unix_nanos() + i64::from(body[0]) * 1_000)).collect()
}

fn open(directory: &Directory, options: LiveOptions) -> LiveStore {
    let store = Store::open(directory.path()).unwrap();
    let (live, problems) = LiveStore::open(&store, options, NOW, &mut |_, body| spans_of(body)).unwrap();
    assert_eq!(problems, Vec::<String>::new());
    live
}

fn append(live: &LiveStore, trace: u8, spans: u8) -> Appended {
    let head = RequestHead { encoding: BodyEncoding::Protobuf, received: NOW, peer_pid: None };
    let body = body(trace, spans);
    live.append(&Request { head, body: &body, spans: &spans_of(&body) }).unwrap()
}

fn wait_until_durable(live: &LiveStore, appended: Appended) -> Result<(), String> {
    let (send, receive) = mpsc::channel();
    live.when_durable(appended, Box::new(move |result| send.send(result).unwrap()));
    receive.recv().unwrap()
}

fn id(trace: u8) -> TraceId {
    testing::trace_id(trace)
}

fn ids(found: &[TraceSummary]) -> Vec<TraceId> {
    found.iter().map(|trace| trace.trace_id).collect()
}

#[test]
fn spans_are_found_at_once_and_after_each_step_of_their_way() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 3);
    let appended = append(&live, 2, 1);
    assert_eq!(live.trace(id(1)).unwrap().len(), 3);
    wait_until_durable(&live, appended).unwrap();
    // Another server finds them in the log of this one.
    drop(live);
    let live = open(&directory, LiveOptions::default());
    assert_eq!(live.trace(id(1)).unwrap().len(), 3);
    // In a segment, with a fragment in the head.
    live.maintain(NOW, true).unwrap();
    append(&live, 1, 5);
    assert_eq!(live.trace(id(1)).unwrap().len(), 5);
    assert_eq!(live.figures(), LiveFigures { head_spans: 5, segments: 1, segment_spans: 4, ..live.figures() });
    live.maintain(NOW, true).unwrap();
    drop(live);
    let live = open(&directory, LiveOptions::default());
    assert_eq!((live.trace(id(1)).unwrap().len(), live.trace(id(2)).unwrap().len()), (5, 1));
    assert!(live.trace(id(3)).unwrap().is_empty());
    // The logs of what stands in segments are gone.
    assert_eq!(Generations::new(&live.shared.folders.wal).numbers().unwrap().len(), 1);
}

#[test]
fn a_span_that_comes_again_is_there_once() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 2);
    append(&live, 1, 2);
    assert_eq!((live.trace(id(1)).unwrap().len(), live.figures().duplicates), (2, 2));
    live.maintain(NOW, true).unwrap();
    append(&live, 1, 2);
    live.maintain(NOW, true).unwrap();
    assert_eq!(live.trace(id(1)).unwrap().len(), 2);
}

#[test]
fn a_span_with_the_ids_of_another_does_not_replace_it() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    let send = |span: &Span| {
        let head = RequestHead { encoding: BodyEncoding::Protobuf, received: NOW, peer_pid: None };
        live.append(&Request { head, body: &body(1, 1), spans: std::slice::from_ref(span) }).unwrap();
    };
    let longer = |span: &Span, nanos| Span { end: Timestamp(span.end.unix_nanos() + nanos), ..span.clone() };
    let first = spans_of(&body(1, 1)).remove(0);
    send(&first);
    // Its own end comes later, and so does the end that somebody else made up.
    send(&longer(&first, 5));
    let renamed = Span { name: "health".into(), ..longer(&first, 9) };
    let moved = Span { start: Timestamp(first.start.unix_nanos() + 1), ..longer(&first, 9) };
    let mut unfinished = longer(&first, 9);
    unfinished.attributes.push("longpole.unfinished", longpole_model::AttributeValue::Bool(true));
    for forged in [&renamed, &moved, &renamed, &moved, &unfinished] {
        send(forged);
    }
    let ends = |live: &LiveStore| -> Vec<(String, i64)> {
        let mut ends: Vec<_> =
            live.trace(id(1)).unwrap().iter().map(|span| (span.name.to_string(), span.end.unix_nanos() - first.end.unix_nanos())).collect();
        ends.sort();
        ends
    };
    let expected = [("health".to_owned(), 9), (first.name.to_string(), 5), (first.name.to_string(), 9)];
    assert_eq!(ends(&live), expected);
    assert_eq!((live.figures().duplicates, live.figures().conflicts), (4, 2));
    // The same where the first is in a segment.
    live.maintain(NOW, true).unwrap();
    for forged in [&renamed, &moved, &unfinished] {
        send(forged);
    }
    assert_eq!(ends(&live), expected);
}

#[test]
fn a_span_that_claims_to_have_no_end_takes_the_place_of_no_other() {
    let victim = spans_of(&body(1, 1)).remove(0);
    let unfinished = |span: &Span, name: &'static str, start| {
        let mut span = Span { name: name.into(), start, end: Timestamp(span.end.unix_nanos() + 9_000_000_000), ..span.clone() };
        span.attributes.push("longpole.unfinished", longpole_model::AttributeValue::Bool(true));
        span
    };
    let name: &'static str = victim.name.to_string().leak();
    let forged = unfinished(&victim, "evil", Timestamp(victim.start.unix_nanos() - 1));
    let early = unfinished(&victim, name, victim.start);
    for are_in_segments in [false, true] {
        let directory = Directory::new();
        let live = open(&directory, LiveOptions::default());
        for span in [&forged, &early, &victim, &forged, &early] {
            let head = RequestHead { encoding: BodyEncoding::Protobuf, received: NOW, peer_pid: None };
            live.append(&Request { head, body: &body(1, 1), spans: std::slice::from_ref(span) }).unwrap();
            live.maintain(NOW, are_in_segments).unwrap();
        }
        let mut spans: Vec<_> = live.trace(id(1)).unwrap().into_iter().map(|span| (span.name.to_string(), span.end)).collect();
        spans.sort();
        let mut expected = [("evil".to_owned(), forged.end), (name.to_owned(), victim.end)];
        expected.sort();
        assert_eq!(spans, expected, "the one that ended is there, though its early copy claims a later end");
    }
}

#[test]
fn a_trace_that_is_too_large_to_be_read_takes_no_other_out_of_a_search() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 2);
    let span = spans_of(&body(2, 1)).remove(0);
    let event = longpole_model::SpanEvent { time: span.start, name: "xx".into(), attributes: longpole_model::Attributes::default() };
    let heavy = Span { events: vec![event; 4_000].into(), ..span };
    let spans: Vec<Span> =
        (1..40).map(|number: u64| Span { span_id: SpanId::from_slice(&number.to_be_bytes()).unwrap(), ..heavy.clone() }).collect();
    let head = RequestHead { encoding: BodyEncoding::Protobuf, received: NOW, peer_pid: None };
    live.append(&Request { head, body: &[], spans: &spans }).unwrap();
    for is_in_segment in [false, true] {
        live.maintain(NOW, is_in_segment).unwrap();
        let store = live.for_query(QueryLimits { memory: QueryMemory::of(&Arc::new(MemoryPool::new(1 << 20))), ..QueryLimits::default() });
        assert!(matches!(store.trace(id(2)), Err(StoreError::TraceTooLarge { .. })));
        let named = SpanFilter { name: Some(spans_of(&body(1, 1))[0].name.to_string()), ..SpanFilter::default() };
        let tagged = |key: &str| SpanFilter { keys: vec![key.to_owned()], ..SpanFilter::default() };
        // A segment knows all words that it has.
        let unknown = usize::from(!is_in_segment);
        for (filter, expected) in [(SpanFilter::default(), 2), (named, 2), (tagged("xx"), 1), (tagged("no such key"), unknown)] {
            assert_eq!(store.find(&filter, 20).unwrap().len(), expected, "{filter:?}, {is_in_segment}");
        }
        assert!(store.limits().memory.bytes() < 100_000);
    }
}

#[test]
fn a_clock_that_was_ahead_does_not_make_what_comes_new_the_oldest() {
    let directory = Directory::new();
    let ahead = Timestamp(NOW.unix_nanos() + 864_000_000_000_000);
    let live = open(&directory, LiveOptions::default());
    let append_at = |live: &LiveStore, trace, received| {
        let head = RequestHead { encoding: BodyEncoding::Protobuf, received, peer_pid: None };
        live.append(&Request { head, body: &body(trace, 3), spans: &spans_of(&body(trace, 3)) }).unwrap();
    };
    append_at(&live, 1, ahead);
    // A step back makes the age of a generation unknown, so it ends.
    let options = LiveOptions { generation_nanos: 3_600_000_000_000, ..LiveOptions::default() };
    live.maintain(ahead, true).unwrap();
    let bytes = live.figures().segment_bytes;
    drop(live);
    let live = open(&directory, LiveOptions { keep_bytes: Some(bytes + bytes / 2), ..options });
    append_at(&live, 2, NOW);
    live.maintain(Timestamp(NOW.unix_nanos() - 1), false).unwrap();
    assert_eq!(live.figures().segments, 1);
    assert_eq!((live.trace(id(1)).unwrap().len(), live.trace(id(2)).unwrap().len()), (0, 3));
}

#[test]
fn the_newest_traces_come_first_wherever_they_are() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    for trace in [3, 1, 2] {
        append(&live, trace, 2);
        live.maintain(NOW, true).unwrap();
    }
    append(&live, 4, 1);
    let all = SpanFilter::default();
    assert_eq!(ids(&live.find(&all, 10).unwrap()), [4, 3, 2, 1].map(id));
    assert_eq!(ids(&live.find(&all, 2).unwrap()), [4, 3].map(id));
    let nobodys = SpanFilter { service: Some("nobody".to_owned()), ..SpanFilter::default() };
    assert_eq!(live.find(&nobodys, 10).unwrap(), []);
    let second = SpanFilter { name: Some(spans_of(&body(1, 2))[1].name.to_string()), ..SpanFilter::default() };
    assert_eq!(ids(&live.find(&second, 10).unwrap()), [3, 2, 1].map(id));
}

#[test]
fn a_list_of_segments_that_is_lost_or_damaged_costs_no_span() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    for trace in [1, 2] {
        append(&live, trace, 3);
        live.maintain(NOW, true).unwrap();
    }
    append(&live, 3, 2);
    let folder = live.shared.folders.manifest.clone();
    drop(live);
    let newest = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let damages: [&dyn Fn(); 3] = [
        &|| fs::write(newest(), b"{").unwrap(),
        &|| {
            let mut bytes = fs::read(newest()).unwrap();
            let place = bytes.len() - 5;
            bytes[place] ^= 1;
            fs::write(newest(), bytes).unwrap();
        },
        &|| fs::read_dir(&folder).unwrap().for_each(|entry| fs::remove_file(entry.unwrap().path()).unwrap()),
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        let store = Store::open(directory.path()).unwrap();
        let (live, problems) = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body)).unwrap();
        assert!(problems[0].contains("the list of segments is damaged") && problems.len() == 1, "damage {number}: {problems:?}");
        let spans = [1, 2, 3].map(|trace| live.trace(id(trace)).unwrap().len());
        assert_eq!(spans, [3, 3, 2], "damage {number}");
        assert_eq!(ids(&live.find(&SpanFilter::default(), 10).unwrap()), [3, 2, 1].map(id), "damage {number}");
    }
    // The list is whole now.
    open(&directory, LiveOptions::default());
}

#[test]
fn a_damaged_segment_costs_its_own_spans_and_no_others() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    for trace in [1, 2] {
        append(&live, trace, 3);
        live.maintain(NOW, true).unwrap();
    }
    append(&live, 3, 2);
    let folder = live.shared.folders.segment_folders().unwrap()[0].1.clone();
    drop(live);
    for (name, damage) in [("trace.idx", b"no index".as_slice()), ("spans.parquet", b"no table")] {
        let whole = fs::read(folder.join(name)).unwrap();
        fs::write(folder.join(name), damage).unwrap();
        let live = open(&directory, LiveOptions::default());
        assert_eq!(live.damaged(), Vec::<String>::new(), "nobody has read it yet");
        let spans = [1, 2, 3].map(|trace| live.trace(id(trace)).unwrap().len());
        assert_eq!(spans, [0, 3, 2], "{name}");
        assert_eq!(ids(&live.find(&SpanFilter::default(), 10).unwrap()), [3, 2].map(id), "{name}");
        assert!(live.damaged()[0].contains("is left out: failed to"), "{name}: {:?}", live.damaged());
        // The disk is back: after a while the segment is tried again.
        fs::write(folder.join(name), whole).unwrap();
        let long_ago = Instant::now().checked_sub(2 * DAMAGED_FOR).unwrap();
        lock(&live.shared.damaged).values_mut().for_each(|(_, found)| *found = long_ago);
        assert_eq!((live.trace(id(1)).unwrap().len(), live.damaged()), (3, Vec::new()), "{name}");
        drop(live);
    }
}

#[test]
fn what_a_link_leads_to_is_not_removed() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 1);
    live.maintain(NOW, true).unwrap();
    let segments = live.shared.folders.segments.clone();
    drop(live);
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir_all(elsewhere.join("precious")).unwrap();
    std::os::unix::fs::symlink(&elsewhere, segments.join("2026112899")).unwrap();
    open(&directory, LiveOptions::default());
    assert!(elsewhere.join("precious").is_dir());
}

#[test]
fn a_search_counts_the_parts_that_do_not_match() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 1);
    live.maintain(NOW, true).unwrap();
    append(&live, 1, 3);
    live.maintain(NOW, true).unwrap();
    append(&live, 1, 4);
    let only_last = SpanFilter { name: Some(spans_of(&body(1, 4))[3].name.to_string()), ..SpanFilter::default() };
    let [found] = &live.find(&only_last, 10).unwrap()[..] else { panic!("not one") };
    // The segments have 1 and 3, the log 4: a span that came again counts again.
    assert_eq!(found.spans, 8);
    assert_eq!(found.root_name, spans_of(&body(1, 1))[0].name.as_str());
    let longer = SpanFilter { min_trace_nanos: Some(found.nanos() + 1), ..SpanFilter::default() };
    assert_eq!(live.find(&longer, 10).unwrap(), []);
}

#[test]
fn old_segments_go_and_leave_nothing() {
    let directory = Directory::new();
    let options = LiveOptions { keep_nanos: Some(1_000), ..LiveOptions::default() };
    let live = open(&directory, options);
    append(&live, 1, 2);
    live.maintain(NOW, true).unwrap();
    assert_eq!(live.figures().segments, 1);
    live.maintain(Timestamp(NOW.unix_nanos() + 2_000), false).unwrap();
    assert_eq!(live.figures().segments, 0);
    assert!(live.trace(id(1)).unwrap().is_empty());
    let hours: Vec<_> = fs::read_dir(&live.shared.folders.segments).unwrap().collect();
    let left: Vec<_> = hours.into_iter().flat_map(|hour| fs::read_dir(hour.unwrap().path()).unwrap()).collect();
    assert_eq!(left.len(), 0);
}

#[test]
fn logs_of_other_nodes_are_taken_over() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    wait_until_durable(&live, append(&live, 1, 3)).unwrap();
    let node = live.shared.folders.node.clone();
    drop(live);
    // Somebody put another node beside it, whose folder comes first or last.
    let nodes = directory.path().join(NODES);
    for (other, trace) in [("00000000", 2), ("ffffffff", 3)] {
        files::make_dirs(&nodes, &[other.as_ref(), "wal".as_ref(), TENANT.as_ref()]).unwrap();
        let live = open(&directory, LiveOptions::default());
        assert_eq!(live.trace(id(1)).unwrap().len(), 3, "{other}");
        wait_until_durable(&live, append(&live, trace, 1)).unwrap();
    }
    let spans = |live: &LiveStore| [1, 2, 3].map(|trace| live.trace(id(trace)).unwrap().len());
    let live = open(&directory, LiveOptions::default());
    assert_eq!(spans(&live), [3, 1, 1]);
    // A second server finds all of them taken.
    let store = Store::open(directory.path()).unwrap();
    let second = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body));
    assert!(matches!(second, Err(StoreError::Served { .. })));
    live.maintain(NOW, true).unwrap();
    assert_eq!(spans(&live), [3, 1, 1]);
    drop(live);
    let live = open(&directory, LiveOptions::default());
    assert_eq!((spans(&live), live.figures().head_spans), ([3, 1, 1], 0));
    assert!(Generations::new(&nodes.join(node).join("wal").join(TENANT)).numbers().unwrap().len() <= 1, "its logs are gone");
}

#[test]
fn a_log_with_a_number_that_longpole_never_gives_is_named() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    wait_until_durable(&live, append(&live, 1, 3)).unwrap();
    let path = live.shared.folders.wal.join("18446744073709551615.wal");
    drop(live);
    fs::write(&path, b"x").unwrap();
    let store = Store::open(directory.path()).unwrap();
    let (live, problems) = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body)).unwrap();
    assert_eq!(live.trace(id(1)).unwrap().len(), 3);
    assert!(problems.len() == 1 && problems[0].contains("18446744073709551615.wal has no name of a log"), "{problems:?}");
    live.maintain(NOW, true).unwrap();
    assert!(path.exists());
}

#[test]
fn an_error_names_the_folder_that_failed() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let bad = directory.path().join("tenants");
    fs::write(&bad, b"").unwrap();
    let error = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body)).unwrap_err();
    assert_eq!(error.to_string(), format!("create {}", bad.display()));
}

#[test]
fn a_span_that_is_called_like_a_log_record_is_shown() {
    let mut span = testing::span(1, 1, 0, NOW.unix_nanos());
    assert!(!set_apart(&mut span));
    span.name = log_events::NAME.into();
    span.scope = Arc::new(longpole_model::Scope { name: log_events::NAME.to_owned(), ..longpole_model::Scope::default() });
    assert!(set_apart(&mut span));
    assert_eq!(log_events::attach(vec![span]).len(), 1);
}

#[test]
fn a_query_that_is_stopped_ends() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 3);
    live.maintain(NOW, true).unwrap();
    append(&live, 2, 3);
    let limits = QueryLimits::default();
    let query = live.for_query(limits.clone());
    assert_eq!((query.trace(id(1)).unwrap().len(), query.find(&SpanFilter::default(), 5).unwrap().len()), (3, 2));
    limits.stop.stop();
    assert!(matches!(query.trace(id(1)), Err(StoreError::Stopped)));
    assert!(matches!(query.find(&SpanFilter::default(), 5), Err(StoreError::Stopped)));
    // Nothing counts as damaged because of it, and others go on.
    assert_eq!((live.damaged(), live.trace(id(1)).unwrap().len()), (Vec::new(), 3));
}

/// In a log and in a segment.
#[test]
fn a_query_takes_memory_for_what_it_reads_and_says_which_trace_is_too_large() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    for in_segment in [true, false] {
        let trace = if in_segment { 1 } else { 2 };
        append(&live, trace, 100);
        live.maintain(NOW, in_segment).unwrap();
        let query_of = |bytes| {
            let pool = Arc::new(MemoryPool::new(bytes));
            (Arc::clone(&pool), live.for_query(QueryLimits { memory: QueryMemory::of(&pool), ..QueryLimits::default() }))
        };
        let (pool, query) = query_of(64 << 20);
        assert_eq!(query.trace(id(trace)).unwrap().len(), 100);
        let used = query.limits().memory.bytes();
        assert!((100 * size_of::<Span>() as u64..200_000).contains(&used), "{in_segment}: {used}");
        // What it reserved stays, so that its next step need not wait.
        assert!((used..200_000).contains(&pool.bytes()), "{in_segment}: {}", pool.bytes());
        // A search, and what is read for a moment, leave nothing.
        query.limits().briefly(|| assert_eq!(query.find(&SpanFilter::default(), 5).unwrap().len(), usize::from(trace)));
        query.limits().briefly(|| query.trace(id(trace)).unwrap());
        assert_eq!((query.limits().memory.bytes(), pool.bytes()), (used, used));
        drop(query);
        assert_eq!(pool.bytes(), 0);

        let (pool, query) = query_of(10_000);
        let error = query.trace(id(trace)).unwrap_err();
        let is_of_this = matches!(error, StoreError::TraceTooLarge { trace_id, spans: 100, limit: 10_000, .. } if trace_id == id(trace));
        assert!(is_of_this || in_segment, "{error}");
        assert!(error.to_string().contains("memory"), "{error}");
        drop(query);
        assert_eq!((pool.bytes(), live.damaged()), (0, Vec::new()));
    }
    assert_eq!(live.trace_extent(id(1)).unwrap().unwrap().rows, 100);
    assert_eq!(live.trace_extent(id(3)).unwrap(), None);
}

#[test]
fn the_oldest_goes_first_whether_it_is_a_segment_or_lies_beside_them() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 3);
    live.maintain(NOW, true).unwrap();
    let bytes = live.figures().segment_bytes;
    drop(live);
    let options = LiveOptions { keep_bytes: Some(2 * bytes), keep_nanos: Some(1_000), ..LiveOptions::default() };
    let live = open(&directory, options);
    let at = |nanos: i64, bytes| KeptBeside { received: Timestamp(NOW.unix_nanos() + nanos), bytes };
    let maintain = |nanos: i64, beside: &[KeptBeside]| {
        let age_at = Timestamp(NOW.unix_nanos() + nanos);
        (live.maintain_at(NOW, age_at, false, beside).unwrap(), live.figures().segments)
    };
    assert_eq!(maintain(0, &[at(5, bytes)]), (vec![], 1), "there is room for both");
    assert_eq!(maintain(0, &[at(5, bytes / 2), at(-5, bytes)]), (vec![1], 1), "the oldest lies beside");
    assert_eq!(maintain(0, &[at(5, 2 * bytes)]), (vec![], 0), "the oldest is the segment");
    assert_eq!(maintain(1_010, &[at(5, 1), at(20, 1)]), (vec![0], 0), "by age");
}

#[test]
fn a_lost_catalog_is_made_again() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    append(&live, 1, 3);
    live.maintain(NOW, true).unwrap();
    wait_until_durable(&live, append(&live, 2, 1)).unwrap();
    drop(live);
    for entry in fs::read_dir(directory.path()).unwrap().map(Result::unwrap) {
        if entry.file_name().to_string_lossy().starts_with("catalog") {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let live = open(&directory, LiveOptions::default());
    assert_eq!((live.trace(id(1)).unwrap().len(), live.trace(id(2)).unwrap().len()), (3, 1));
}

#[test]
fn a_second_server_is_refused() {
    let directory = Directory::new();
    let _live = open(&directory, LiveOptions::default());
    let store = Store::open(directory.path()).unwrap();
    let second = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body));
    assert!(matches!(second, Err(StoreError::Served { .. })));
}

/// A server that ends between any two steps of making a segment leaves each span once.
#[test]
fn an_end_between_segment_and_manifest_loses_nothing() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    let appended = append(&live, 1, 3);
    wait_until_durable(&live, appended).unwrap();
    let logs = live.shared.folders.wal.clone();
    let log = logs.join(generation::file_name(0));
    let bytes = fs::read(&log).unwrap();
    live.maintain(NOW, true).unwrap();
    drop(live);
    // The log is still there, although the manifest says that it is not needed.
    fs::write(&log, &bytes).unwrap();
    let live = open(&directory, LiveOptions::default());
    assert_eq!((live.trace(id(1)).unwrap().len(), live.figures().head_spans), (3, 0));
    let manifest = live.shared.folders.manifest.clone();
    drop(live);
    // The segment is there, and the newest manifest is the one before it.
    fs::write(&log, &bytes).unwrap();
    let newest = fs::read_dir(&manifest).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    fs::remove_file(newest).unwrap();
    let live = open(&directory, LiveOptions::default());
    assert_eq!((live.trace(id(1)).unwrap().len(), live.figures().segments), (3, 0));
}

#[test]
fn hours_are_those_of_the_calendar() {
    for (seconds, hour) in
        [(0, "1970010100"), (951_825_600, "2000022912"), (1_795_867_199, "2026112811"), (4_107_542_399, "2100022823"), (-1, "1969123123")]
    {
        assert_eq!(hour_of(Timestamp(seconds * 1_000_000_000)), hour);
    }
}

#[test]
fn the_first_segment_that_no_list_names_is_made_again_while_its_logs_are_there() {
    for are_logs_there in [true, false] {
        let directory = Directory::new();
        let live = open(&directory, LiveOptions::default());
        let acknowledged = append(&live, 1, 3);
        wait_until_durable(&live, acknowledged).unwrap();
        let folders = &live.shared.folders;
        assert_eq!(Generations::new(&folders.wal).numbers().unwrap(), [0]);
        let unfinished = folders.segments.join(format!("2026112812/0-{}-{:010}", folders.node, if are_logs_there { 0 } else { 1 }));
        drop(live);
        fs::create_dir_all(&unfinished).unwrap();
        fs::write(unfinished.join("spans.parquet"), b"half").unwrap();
        let live = open(&directory, LiveOptions::default());
        assert_eq!((live.trace(id(1)).unwrap().len(), unfinished.exists()), (3, !are_logs_there));
    }
}

#[test]
fn a_start_removes_only_what_it_was_making() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    let acknowledged = append(&live, 1, 3);
    wait_until_durable(&live, acknowledged).unwrap();
    live.maintain(NOW, true).unwrap();
    let (node, segments) = (live.shared.folders.node.clone(), live.shared.folders.segments.clone());
    drop(live);
    let hour = fs::read_dir(&segments).unwrap().next().unwrap().unwrap().path();
    let folders = [hour.join(format!("0-{node}-9")), hour.join("0-0badcafe-9"), segments.join("my-backup/photos")];
    for folder in &folders {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("a.jpg"), b"a").unwrap();
    }
    let store = Store::open(directory.path()).unwrap();
    let (live, problems) = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, body| spans_of(body)).unwrap();
    assert_eq!(live.trace(id(1)).unwrap().len(), 3);
    // The first was being made when the server ended: its log is there.
    assert_eq!(folders.clone().map(|folder| folder.join("a.jpg").exists()), [false, true, true]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems.iter().all(|line| line.ends_with("is in no list of segments: its spans are not read, and it stays")), "{problems:?}");
}

#[test]
fn what_is_kept_of_segments_has_a_limit_and_costs_no_answer() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    for trace in 1..=12 {
        append(&live, trace, 3);
        live.maintain(NOW, true).unwrap();
    }
    let descriptors = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let before = descriptors();
    for _ in 0..3 {
        assert_eq!(live.find(&SpanFilter::default(), 20).unwrap().len(), 12);
        assert!((1..=12).all(|trace| live.trace(id(trace)).unwrap().len() == 3));
        live.operations().unwrap();
        // The parts of the segments that one query needs at once may be more.
        let kept = live.figures().segment_memory_bytes;
        assert!((1..1 << 20).contains(&kept), "{kept} bytes");
    }
    // Other tests open files meanwhile; with four of each segment there were 48 more.
    assert!(descriptors() < before + 40, "{before} descriptors before, {} now", descriptors());
    drop(live);
}

#[test]
fn a_long_name_takes_no_room_of_others() {
    let directory = Directory::new();
    let live = open(&directory, LiveOptions::default());
    let name = "x".repeat(1 << 20);
    let spans: Vec<Span> = (1..=3).map(|span| Span { name: name.as_str().into(), ..testing::span(1, span, 0, 0) }).collect();
    let head = RequestHead { encoding: BodyEncoding::Protobuf, received: NOW, peer_pid: None };
    live.append(&Request { head, body: &[1, 3], spans: &spans }).unwrap();
    let listed = |live: &LiveStore| live.find(&SpanFilter::default(), 5).unwrap()[0].root_name.to_string();
    assert_eq!(listed(&live).chars().count(), 257, "a list has its beginning");
    live.maintain(NOW, true).unwrap();
    assert_eq!(listed(&live).chars().count(), 257);
    assert_eq!(live.trace(id(1)).unwrap()[0].name.len(), 1 << 20, "the trace has all of it");
    // A request comes compressed, and so does its segment.
    assert!(live.figures().segment_bytes < 200_000, "{} bytes", live.figures().segment_bytes);
}

#[test]
fn a_record_of_a_log_goes_to_the_span_of_its_service() {
    let service = |name: &str| {
        let mut resource = longpole_model::Resource::default();
        resource.attributes.push("service.name", longpole_model::AttributeValue::Str(name.into()));
        Arc::new(resource)
    };
    let span = |name: &str, of: &str| Span { name: name.into(), resource: service(of), ..testing::span(1, 1, 0, 0) };
    let mut record = span(log_events::NAME, "pay");
    record.scope = Arc::new(longpole_model::Scope { name: log_events::NAME.to_owned(), ..longpole_model::Scope::default() });
    let refund = longpole_model::SpanEvent { time: NOW, name: "refund failed".into(), attributes: longpole_model::Attributes::default() };
    record.events = vec![refund].into();
    let spans = log_events::attach(vec![span("mine", "evil"), span("pay", "pay"), record]);
    assert_eq!(spans.iter().map(|span| span.events.len()).collect::<Vec<_>>(), [0, 1]);
}
