//! Views of a small deployment, as JSON a person can check against the text above them.

use longpole_analysis::Report;
use longpole_model::text;
use serde_json::{Value, json};

use super::*;

/// The engine creates a bundle, which computes, then a database, which waits for the bundle and then for the cloud.
const DEPLOY: &str = "
run                0..100ms
  deploy           0..100ms  engine  pid 2
    create bundle  0..40ms   aws     pid 3
    create db      40..95ms  aws     pid 3  <- create bundle
sample 1ms x30 every 1ms  pid 3 tid 3  [create bundle] main;compress@src/bundle.rs:12;hash|block@src/hash.rs:7
sample 41ms x2 every 1ms  pid 3 tid 3  [create db] main;connect@src/db.rs:3
sample 97ms x1 every 1ms  pid 9 tid 9  other
";

fn deploy() -> Report {
    Report::new(text::parse(DEPLOY).unwrap())
}

fn json_of(view: impl Serialize) -> Value {
    serde_json::to_value(view).unwrap()
}

#[test]
fn print_all() {
    let report = deploy();
    for v in [
        json_of(SummaryView::new("r7", &report)),
        json_of(TreeView::new("r7", &report)),
        json_of(SpanView::new("r7", &report, "p1")),
        json_of(FlameView::of_span("r7", &report, "s3")),
        json_of(FrameView::new("r7", &report, "f1")),
        json_of(SpanView::new("r7", &report, "s1")),
    ] {
        println!("{}", serde_json::to_string_pretty(&v).unwrap());
    }
}
