//! Whole answers as a person sees them: a recording in the notation of tests, and the text beside it in `snapshots/`.

use insta::assert_snapshot;
use longpole_analysis::Report;
use longpole_analysis::report::{Excerpt, FlameTime};
use longpole_model::text;
use longpole_recording::view;

use crate::next_command::own_name;
use crate::terminal::Style;
use crate::terminal::screen::Screen;

/// Three operations in two services: one computes, one waits for a lock and for a socket, one follows the others.
const DEPLOY: &str = "
run 0..1200ms
  deploy 1..1190ms engine pid 2
    build 5..420ms engine
    create db 430..1100ms aws pid 3 kind client
    create web 1105..1180ms aws <- create db
process engine 1..1195ms pid 2 under 1
process aws 2..1199ms pid 3 under 1
thread engine 1..1195ms pid 2 tid 2
thread aws 2..1199ms pid 3 tid 3
thread flush 3..1150ms pid 3 tid 4
sample 6ms x380 every 1ms pid 2 tid 2 [build] main;build_all@src/build.rs:40;compress@src/compress.rs:12
sample 387ms x30 every 1ms pid 2 tid 2 [build] main;build_all@src/build.rs:44
sample 1110ms x40 every 1ms pid 3 tid 3 [create web] main;create@src/aws.rs:90;serialize
sample 640ms x60 every 1ms pid 3 tid 4 [-] start_thread;flush_all@src/flush.rs:7
wait 435..640ms pid 3 tid 3 network in recvfrom [create db] main;create@src/aws.rs:88
wait 640..1090ms pid 3 tid 3 lock in futex at 0x7f10 holder 4 [create db] main;create@src/aws.rs:101
wait 700..1080ms pid 3 tid 4 disk in fsync [-] start_thread;flush_all@src/flush.rs:9
";

/// The same with names of two columns a character.
const WIDE: &str = "
run 0..900ms
  \"検索サービスの初期化\" 10..850ms \"商品検索\" pid 2
    \"🚀 deploy\" 20..400ms \"商品検索\" @rocket
    \"cafe\u{301} menu\" 410..840ms \"café\"
process worker 1..890ms pid 2 under 1
sample 20ms x380 every 1ms pid 2 tid 2 [rocket] main;起動
";

/// A build without spans.
const PROCESSES: &str = "
run 0..2s
process make 0..1990ms pid 2 under 1
process cc1 10..1500ms pid 3 under 2
process ld 1505..1980ms pid 4 under 2
thread make 0..1990ms pid 2 tid 2
thread cc1 10..1500ms pid 3 tid 3
thread ld 1505..1980ms pid 4 tid 4
cpu 12..1495ms pid 3 tid 3
cpu 1510..1700ms pid 4 tid 4
sample 12ms x1480 every 1ms pid 3 tid 3 main;compile@toplev.c:500;parse@c-parser.c:1200
sample 1510ms x190 every 1ms pid 4 tid 4 main;link@ldmain.c:80
wait 1700..1975ms pid 4 tid 4 disk in fsync main;link@ldmain.c:99
";

fn report(recording: &str) -> Report {
    Report::new(text::parse(recording).unwrap())
}

/// What a person sees: how this test was started is none of it.
fn seen(screen: Screen) -> String {
    screen.as_str().replace(&own_name(), "longpole")
}

fn answer(recording: &str, style: Style) -> String {
    seen(super::answer::answer(&view::SummaryView::new("r1", &report(recording)), style))
}

#[test]
fn the_answer_of_a_run_with_spans() {
    assert_snapshot!(answer(DEPLOY, Style::plain()));
}

#[test]
fn the_answer_of_a_run_without_spans() {
    assert_snapshot!(answer(PROCESSES, Style::plain()));
}

#[test]
fn the_answer_with_wide_names() {
    assert_snapshot!(answer(WIDE, Style::plain()));
}

#[test]
fn the_answer_in_narrow_and_wide_terminals() {
    assert_snapshot!(format!("{}\n{}", answer(DEPLOY, Style::of_width(72)), answer(DEPLOY, Style::of_width(140))));
}

#[test]
fn the_tree_of_spans() {
    let tree = |recording| seen(super::tree::tree(&view::TreeView::new("r1", &report(recording)), 0, 200, Style::plain()));
    assert_snapshot!(format!("{}\n{}", tree(DEPLOY), tree(WIDE)));
}

#[test]
fn one_span() {
    let view = view::SpanView::new("r1", &report(DEPLOY), "p1").unwrap();
    assert_snapshot!(seen(super::span::span(&view, true, Style::plain())));
}

#[test]
fn all_spans_of_a_name() {
    let recording = "run 0..100ms\n  query 5..20ms shop pid 2\n  query 21..35ms shop\n  query 40..90ms shop\n";
    let view = view::SpansView::new("r1", &report(recording), "query").unwrap();
    assert_snapshot!(seen(super::spans::spans(&view, true, Style::plain())));
}

#[test]
fn the_functions() {
    let options = view::TopOptions { limit: 20, time: FlameTime::OnCpu, ..view::TopOptions::default() };
    let view = view::TopView::new("r1", &report(DEPLOY), None, options).unwrap();
    assert_snapshot!(seen(super::top::top(&view, Style::plain())));
}

#[test]
fn one_function() {
    let view = view::FrameView::new("r1", &report(DEPLOY), "f1").unwrap();
    assert_snapshot!(seen(super::frame::frame(&view, Style::plain())));
}

#[test]
fn the_flame_graph() {
    let view = view::FlameView::of_run("r1", &report(DEPLOY), FlameTime::Wall, false, Excerpt::default());
    assert_snapshot!(seen(super::flame::flame(&view, 0.5, Style::plain())));
}

#[test]
fn the_threads() {
    let view = view::ThreadsView::new("r1", &report(DEPLOY), None);
    assert_snapshot!(seen(super::threads::threads(&view, 20, Style::plain())));
}

#[test]
fn the_processes() {
    let view = view::ProcessesView::new("r1", &report(PROCESSES));
    assert_snapshot!(seen(super::processes::processes(&view, Style::plain())));
}

#[test]
fn what_changed_between_two_runs() {
    let faster = DEPLOY.replace("430..1100ms", "430..900ms").replace("1105..1180ms", "905..980ms").replace("1..1190ms", "1..990ms");
    let faster = faster.replace("run 0..1200ms", "run 0..1000ms");
    let (before, after) = (report(DEPLOY), report(&faster));
    let view = view::diff::DiffView::new(("r1", &before), ("r2", &after), 20);
    assert_snapshot!(seen(super::diff::diff(&view, Style::plain())));
}
