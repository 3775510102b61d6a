//! The contract of the views stands in one place: the structs of `src/view` and their doc comments. This test generates from them the
//! page `docs/formats/http-api.md`, between its two marks, and the types and the decoder of the page in `web/src/api`. What the terminal writes
//! of numbers goes to `web/src/logic/units.gen.json`, with which the page compares what it writes itself.
//!
//! It fails where one of these is stale, and writes them with:
//!
//! ```text
//! LONGPOLE_UPDATE_CONTRACT=1 cargo test -p longpole-recording --test contract
//! ```

mod markdown;
mod numbers;
mod typescript;
mod views;

use std::path::{Path, PathBuf};

use views::Views;

/// Views that the HTTP API answers with, in the order of the page.
const SERVED: [&str; 27] = [
    "RecordingsView",
    "SummaryView",
    "PolesView",
    "WhatIfView",
    "TreeView",
    "SpanView",
    "SpansView",
    "FlameView",
    "FrameView",
    "SourceView",
    "ThreadsView",
    "LanesView",
    "ProcessesView",
    "DiffView",
    "ServicesView",
    "TracesView",
    "TracesOfRecordingView",
    "ServiceMapView",
    "SharedPolesView",
    "ProfileTypesView",
    "ProfileView",
    "ProfileDiffView",
    "ProfileValuesView",
    "ServiceGrowthView",
    "KeptView",
    "ServerView",
    "LinkView",
];

/// Views that only the CLI prints.
const PRINTED: [&str; 1] = ["TopView"];

/// Where the generated part of the page begins and ends.
const MARKS: [&str; 2] = ["<!-- generated from crates/longpole-recording/src/view: begin -->\n", "<!-- generated: end -->\n"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a file with what it must hold, or writes it where the environment says so.
fn check(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("LONGPOLE_UPDATE_CONTRACT").is_some() {
        std::fs::write(&file, expected).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "{path} is stale; LONGPOLE_UPDATE_CONTRACT=1 cargo test -p longpole-recording --test contract writes it");
}

#[test]
fn the_page_of_the_format_shows_every_view() {
    let views = Views::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/view"));
    let path = "docs/formats/http-api.md";
    let page = std::fs::read_to_string(root().join(path)).expect("the page of the format");
    let [begin, end] = MARKS;
    let (before, rest) = page.split_once(begin).expect("the mark at which the generated part begins");
    let (_, after) = rest.split_once(end).expect("the mark at which the generated part ends");
    check(path, &format!("{before}{begin}\n{}{end}{after}", markdown::page(&views, &[&SERVED[..], &PRINTED[..]].concat())));
}

#[test]
fn the_types_of_the_page_are_those_of_the_views() {
    let views = Views::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/view"));
    check("web/src/api/types.gen.ts", &typescript::types(&views, &SERVED));
    check("web/src/api/decode.gen.ts", &typescript::decoders(&views, &SERVED));
}

#[test]
fn the_page_knows_how_the_terminal_writes_numbers() {
    check("web/src/logic/units.gen.json", &numbers::examples());
}
