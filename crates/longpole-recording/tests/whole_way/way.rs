//! The whole way of a file: bytes → recording → report → every view and every export, and the exports in again.
//!
//! Compiled into the tests of `longpole-recording` and into the fuzz target of the same name: whatever the bytes, nothing on the way panics.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use longpole_analysis::Report;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_model::{Nanos, Recording};
use longpole_recording::export::{self, Format, Selection};
use longpole_recording::kept::KeptView;
use longpole_recording::view::diff::DiffView;
use longpole_recording::view::{self, Chosen, TopOptions};
use longpole_recording::{import, seal};
use longpole_store::Store;

/// Handles of each kind that the test queries: a mutated file has few, and the first ones have most.
const HANDLES_MAX: usize = 8;

/// What writes files that are read again.
const READ_AGAIN: [Format; 7] =
    [Format::OtlpJson, Format::OtlpProtobuf, Format::Zipkin, Format::Jaeger, Format::AppDash, Format::Pprof, Format::Folded];

/// Where the files of one process lie.
pub(crate) struct Place {
    file: PathBuf,
    store: PathBuf,
}

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        // In memory, where there is such a folder: a million files are written.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let root = root.join(format!("longpole-whole-way-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&root).expect("a folder for the files of the test");
        Place { file: root.join("file"), store: root.join("store") }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(root) = self.file.parent() {
            std::fs::remove_dir_all(root).ok();
        }
    }
}

/// Takes a file the whole way. `true` where it was read at all.
pub(crate) fn whole_way(bytes: &[u8], place: &Place, keep: bool) -> bool {
    std::fs::write(&place.file, bytes).expect("a place for files");
    let Ok(contents) = import::read(&place.file) else { return false };
    recording_way(contents.recording(), place);
    if keep {
        // Exports were read from there meanwhile.
        std::fs::write(&place.file, bytes).expect("a place for files");
        kept(place);
    }
    true
}

/// The way of a recording, as a `.lpole` or a store may hold it.
pub(crate) fn recording_way(recording: Recording, place: &Place) {
    let report = import::report(recording);
    all_views(&report);
    exports(&report, place);
}

/// As `import FILE` does, and then the commands on what was kept.
fn kept(place: &Place) {
    let store = Store::open(&place.store).expect("a new store");
    let contents = import::read(&place.file).expect("it was read before");
    let (name, _) = import::keep(&store, contents).expect("what was read can be kept");
    let report = seal::load(&store, name, &|| false).expect("what was kept can be read");
    all_views(&report);
    serialised(&view::RecordingsView::new(&store.list().expect("a list")));
    let mut packed = Vec::new();
    store.recording(name).and_then(|stored| stored.write_archive(&mut packed)).expect("what was kept can be archived");
    std::fs::remove_dir_all(&place.store).expect("the store was there");
}

fn exports(report: &Report, place: &Place) {
    let granularity_nanos = (report.wall().magnitude() / 50).max(1);
    let of_spans = [Format::PprofOfSpans { granularity_nanos }, Format::FoldedOfSpans { granularity_nanos }];
    let others = [Format::Chrome, Format::Firefox, Format::Speedscope];
    for format in READ_AGAIN.into_iter().chain(of_spans).chain(others) {
        for time in [FlameTime::Wall, FlameTime::OnCpu] {
            let selection = Selection::of_run(time, true);
            let _ = export::has_code(report, &selection);
            let mut written = Vec::new();
            export::write(report, format, &selection, &mut written).expect("memory takes what is written");
            if time == FlameTime::OnCpu && READ_AGAIN.contains(&format) {
                std::fs::write(&place.file, &written).expect("a place for files");
                if let Ok(contents) = import::read(&place.file) {
                    let report = import::report(contents.recording());
                    serialised(&view::SummaryView::new("again", &report));
                    serialised(&view::PolesView::new("again", &report));
                    serialised(&view::TreeView::new("again", &report));
                }
            }
        }
    }
}

fn serialised(view: &impl serde::Serialize) {
    serde_json::to_vec(view).expect("a view is JSON");
}

/// A view that is kept beside a recording says the same when it is read again.
fn read_again<V: KeptView>(view: &V) {
    let written = serde_json::to_string(view).expect("a view is JSON");
    let read: V = serde_json::from_str(&written).expect("it is read again");
    assert_eq!(serde_json::to_string(&read).expect("a view is JSON"), written, "{}", V::NAME);
}

/// Every view of every command.
fn all_views(report: &Report) {
    read_again(&view::SummaryView::new("r1", report));
    read_again(&view::PolesView::new("r1", report));
    serialised(&view::WhatIfView::new("r1", report, &["p1", "p2", "p3"]).ok());
    serialised(&view::TreeView::new("r1", report));
    serialised(&view::ThreadsView::new("r1", report, None));
    for range in [(Nanos::MIN, Nanos::MAX), (Nanos(0), Nanos(1)), (Nanos(0), report.wall() / 3)] {
        serialised(&view::ThreadsView::new("r1", report, Some(range)));
        serialised(&view::LanesView::new("r1", report, range, 7, 20));
        let excerpt = Excerpt { range: Some(range), tid: None };
        serialised(&view::FlameView::of_run("r1", report, FlameTime::Wall, true, excerpt));
        serialised(&view::TopView::new("r1", report, None, TopOptions { time: FlameTime::Wall, excerpt, ..TopOptions::default() }));
    }
    serialised(&view::ProcessesView::new("r1", report));
    serialised(&DiffView::new(("r1", report), ("r1", report), 0));
    let times = [FlameTime::OnCpu, FlameTime::OffCpu, FlameTime::Wall];
    for time in times {
        for all_threads in [false, true] {
            serialised(&view::FlameView::of_run("r1", report, time, all_threads, Excerpt::default()));
            let options = TopOptions { time, all_threads, by_total: all_threads, ..TopOptions::default() };
            serialised(&view::TopView::new("r1", report, None, options));
        }
    }
    let nodes = report.forest().len().min(HANDLES_MAX);
    let poles = report.poles().len().min(HANDLES_MAX);
    let handles = (0..nodes).map(|node| format!("s{node}")).chain((1..=poles).map(|pole| format!("p{pole}")));
    for handle in handles {
        serialised(&view::SpanView::new("r1", report, &handle));
        for time in times {
            serialised(&view::FlameView::of_spans("r1", report, view::Chosen::Handle(&handle), time, Excerpt::default()));
            let options = TopOptions { time, ..TopOptions::default() };
            serialised(&view::TopView::new("r1", report, Some(Chosen::Handle(&handle)), options));
        }
    }
    for node in report.forest().ids().take(nodes) {
        let name = report.name(node).to_owned();
        serialised(&view::SpansView::new("r1", report, &name));
        serialised(&view::FlameView::of_spans("r1", report, view::Chosen::Name(&name), FlameTime::Wall, Excerpt::default()));
    }
    for function in 0..report.functions().list.len().min(HANDLES_MAX) {
        let handle = format!("f{function}");
        serialised(&view::FrameView::new("r1", report, &handle));
        serialised(&view::SourceView::new("r1", report, &handle, None));
    }
}

/// Files that were run, and what became of them.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) read: u64,
    pub(crate) slowest: Duration,
}

impl Tally {
    pub(crate) fn run(&mut self, bytes: &[u8], place: &Place) {
        let begin = Instant::now();
        self.read += u64::from(whole_way(bytes, place, self.runs.is_multiple_of(32)));
        self.runs += 1;
        self.slowest = self.slowest.max(begin.elapsed());
    }
}
