//! Story: a shop's checkout is slow. Its services send spans, and one of them asks somebody else's service, which does not.
//! Guarantees: the answer, as text and as JSON, names the span of the service that asks, says that it is blocked on the network, and
//! names the function that makes the call; the process that answers it is named as well, and what it did meanwhile, though it sends no span.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Sandbox, can_sample, example, json, longpole, plain_user};

/// The span that is slow by construction, and the function that waits in it; see `examples/shop/README.md`.
const SPAN: &str = "validate card";
const FUNCTION: &str = "shop_example::payment::validate_card";

/// Least share of the span's time on the path in which it must be seen blocked on the network.
const NETWORK_SHARE_MIN: f64 = 0.8;

/// 8 × 120 ms, less a tenth.
const ON_PATH_MIN_NANOS: i64 = 864_000_000;

#[test]
fn the_answer_names_the_operation_that_waits_for_the_third_party() {
    if !can_sample("the_answer_names_the_operation_that_waits_for_the_third_party") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--"]).arg(example("shop")).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(String::from_utf8_lossy(&run.stdout), "16 checkouts\n");
    check(&String::from_utf8(run.stderr).unwrap(), |args| json(longpole(&store).args(args)));
}

#[test]
fn a_plain_user_gets_the_same_answer() {
    let story = "a plain user follows a checkout";
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, story) else { return };
    if !can_sample(story) {
        return;
    }
    let store = sandbox.path("store");
    for binary in ["shop-gateway", "shop-cart", "shop-payment", "shop-bank"] {
        user.install(&example(binary));
    }
    let of_store = |store: &Path| {
        let mut command = user.command(&user.longpole());
        command.arg("--store").arg(store);
        command
    };
    let run = of_store(&store).args(["run", "--"]).arg(user.install(&example("shop"))).stdin(Stdio::null()).output().unwrap();
    let answer = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.success(), "{answer}");
    check(&answer, |args| json(of_store(&store).args(args)));
}

fn check(answer: &str, ask: impl Fn(&[&str]) -> Value) {
    let lines: Vec<&str> = answer.lines().collect();
    let pole = lines.iter().position(|line| line.starts_with("p1 ")).unwrap_or_else(|| panic!("no pole:\n{answer}"));
    assert!(lines[pole].contains(SPAN), "the first pole is another one:\n{answer}");
    let (reason, next) = (lines[pole + 1], lines[pole + 2]);
    // What would end last stands behind it where the line has room.
    let is_named = reason.contains(&format!(", in {FUNCTION}")) || reason.contains("…payment::validate_card");
    assert!(reason.contains("blocked on the network") && is_named, "the reason is {reason:?}:\n{answer}");

    let view = ask(&["show", "--format", "json"]);
    let pole = &view["poles"][0];
    assert_eq!((&pole["service"], &pole["name"]), (&"payment".into(), &SPAN.into()), "{answer}");
    assert_eq!(pole["count"], 16, "{pole}");
    assert!(pole["on_path_nanos"].as_i64().unwrap() >= ON_PATH_MIN_NANOS, "{pole}");
    let share = pole["states"]["blocked_nanos"]["network"].as_f64().unwrap() / pole["on_path_nanos"].as_f64().unwrap();
    assert!(share >= NETWORK_SHARE_MIN, "only {share:.2} of it is blocked on the network: {pole}");
    assert_eq!(pole["reason"]["function"], FUNCTION, "{pole}");

    let span = ask(&["span", "p1", "--format", "json"]);
    assert_eq!((&span["service"], &span["name"]), (&"payment".into(), &SPAN.into()));
    for callee in [&span["callee"], &pole["callee"]] {
        assert_eq!((&callee["processes"][0]["name"], &callee["answers"]), (&"shop-bank".into(), &false.into()), "{callee}");
    }
    let callee = &pole["callee"];
    let slept = &callee["waits"][0];
    assert_eq!((&slept["kind"], &slept["function"]), (&"sleep".into(), &"shop_example::bank::look_up_card".into()), "{callee}");
    let other_side = "the other side is in process shop-bank (pid ";
    assert!(next.contains(other_side) && next.contains("asleep, in shop_example::bank::look_up_card"), "no other side: {next:?}\n{answer}");
    assert_eq!((&span["waits"][0]["kind"], &span["waits"][0]["function"]), (&"network".into(), &FUNCTION.into()), "{}", span["waits"]);
}
