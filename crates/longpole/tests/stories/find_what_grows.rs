//! Story: the memory of a service grows, by a percent a day, and nobody knows since when or why.
//! Guarantees: `longpole growth` names the service, how fast it grows, since when and after which version, and the function that holds what was
//! added; load that comes each day, a new version that needs more, a cache that fills and more processes are no growth; restarts hide none.

use std::time::{SystemTime, UNIX_EPOCH};

use longpole_testing::random::Random;
use serde_json::{Value, json};

use crate::support::served::Served;
use crate::support::{Sandbox, http, json as json_of, longpole};

/// Profiles of a day, and days.
const A_DAY: u64 = 2;
const DAYS: u64 = 30;

/// Sends a state of a process: its labels, and folded stacks.
fn push(served: &Served, name: &str, at: u64, stacks: &str) {
    let units = if name.contains("goroutines") { "units=goroutines" } else { "units=bytes&aggregationType=average" };
    let name = name.replace('{', "%7B").replace('}', "%7D");
    let path = format!("/ingest?name={name}&from={at}&until={}&format=folded&{units}", at + 10);
    let answer = http::post(served.port("pyroscope"), &path, "text/plain", stacks).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
}

#[test]
fn a_leak_of_a_month_is_named_with_its_function_and_version() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let begin = now - DAYS * 86_400;
    let mut random = Random(3);
    for step in 0..DAYS * A_DAY {
        let at = begin + step * 86_400 / A_DAY;
        let day = step as f64 / A_DAY as f64;
        let mut noise = |of: f64| of * (random.below(2_001) as f64 / 1_000.0 - 1.0);
        // The leak: version 1.8 came on day 12 and keeps 2 MB of 200 more each day.
        let kept = 40e6 + 2e6 * (day - 12.0).max(0.0);
        let version = if day < 12.0 { "1.7" } else { "1.8" };
        for instance in ["a", "b"] {
            let index = 160e6 + noise(2e6);
            let stacks = format!("main;load;index {}\nmain;handle;remember {}\n", index as u64, kept as u64);
            push(&served, &format!("cart.inuse_space{{instance={instance},version={version}}}"), at, &stacks);
        }
        // Load of each day.
        let load = 100e6 + 30e6 * f64::from(u8::from(step % A_DAY == 0)) + noise(5e6);
        push(&served, "orders.inuse_space", at, &format!("main;serve {}\n", load as u64));
        // A version that needs more.
        let needed = 80e6 + 60e6 * f64::from(u8::from(day >= 20.0)) + noise(2e6);
        push(&served, "search.inuse_space", at, &format!("main;cache {}\n", needed as u64));
        // More processes, each as large as before.
        for instance in 0..1 + step / 20 {
            push(&served, &format!("pay.inuse_space{{pod=pay-{instance}}}"), at, &format!("main;pool {}\n", (50e6 + noise(1e6)) as u64));
        }
        push(&served, "mail.goroutines", at, &format!("main;poll {}\nmain;send {}\n", 400, 100 + step));
    }
    let at = format!("localhost:{}", served.port("page"));
    let view: Value = json_of(longpole(&store).args(["growth", "--at", &at, "--since", "31d", "--format", "json"]));
    let growing = view["growing"].as_array().unwrap();
    let of = |service: &str| growing.iter().find(|it| it["service"] == service).unwrap_or_else(|| panic!("no {service}: {view}"));
    assert_eq!((growing.len(), &view["steady"], &view["too_short"]), (2, &json!(3), &json!(0)), "{view}");
    let cart = of("cart");
    assert_eq!((&cart["processes"], &of("mail")["processes"]), (&json!(2), &json!(1)), "{view}");
    assert_eq!(cart["version"], "version=\"1.8\"", "{cart}");
    let since: u64 = cart["since_unix_nano"].as_str().unwrap().parse().unwrap();
    let days = since as f64 / 86_400e9 - begin as f64 / 86_400.0;
    assert!((11.9..12.1).contains(&days), "the first profile of the version came on day 12 and not on {days}: {cart}");
    let (low, high) = (cart["per_day_range"][0].as_f64().unwrap(), cart["per_day_range"][1].as_f64().unwrap());
    assert!(low <= 2e6 && 2e6 <= high && high - low < 0.8e6, "{cart}");
    let first = &cart["functions"][0];
    assert_eq!((&first["function"], &first["callers"]), (&json!("remember"), &json!(["main", "handle"])), "{cart}");
    assert!(first["share"].as_f64().unwrap() > 0.9, "{cart}");
    let mail = of("mail");
    assert_eq!((&mail["functions"][0]["function"], &mail["since_unix_nano"]), (&json!("send"), &Value::Null), "{mail}");
    // A sum over a time in which one version followed another is that of two processes, not of four.
    let query = "memory:inuse_space:bytes:space:bytes{service_name=\"cart\"}";
    let profile: Value = json_of(longpole(&store).args(["profile", query, "--at", &at, "--since", "31d", "--format", "json"]));
    let total = profile["total"].as_f64().unwrap();
    assert!((400e6..440e6).contains(&total), "{total}");
    // So is each value of the line on the page.
    let path = format!("/longpole/v1/profiles/values?query={}&start={}&steps=60", query.replace('"', "%22"), begin * 1_000_000);
    let values = http::get(served.port("page"), &path).json();
    let line: Vec<f64> = values["value"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
    assert!(line.len() >= 59 && line.iter().all(|value| (390e6..485e6).contains(value)), "{values}");
    assert_eq!(values["versions"][0]["label"], "version=\"1.8\"", "{values}");
    // The same in words, and after a restart out of segments.
    served.kill();
    let served = Served::start_with(&store, &["--segment-every", "1s"], &[]);
    let metrics = || http::get(served.port("admin"), "/metrics").body;
    while metrics().contains("\nlongpole_segment_profile_values 0\n") {
        std::thread::yield_now();
    }
    let at = format!("localhost:{}", served.port("page"));
    let growth = |arguments: &[&str]| {
        let output = longpole(&store).args(["growth", "--at", &at]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let text = growth(&["--since", "31d"]);
    assert!(
        text.contains("cart  memory in use grows by 2.0MB a day") || text.contains("cart  memory in use grows by 1.9MB a day"),
        "{text}"
    );
    assert!(text.contains("remember holds") && text.contains("when the first profiles of version=\"1.8\" came"), "{text}");
    assert!(text.contains("mail  goroutines grow by 2.0 a day") || text.contains("mail  goroutines grow by 1.9 a day"), "{text}");
    assert!(growth(&["orders", "--since", "31d"]).contains("Nothing of orders grows: 1 gauge does not grow"), "{}", growth(&["orders"]));
    assert!(growth(&["nobody"]).contains("No profiles of nobody"), "{}", growth(&["nobody"]));
    served.stop();
}

/// A service that leaks is restarted, and scaled up.
#[test]
fn neither_a_restart_nor_a_small_new_process_hides_a_leak() {
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let served = Served::start(&store);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let begin = now - DAYS * 86_400;
    let mut random = Random(9);
    for step in 0..DAYS * A_DAY {
        let at = begin + step * 86_400 / A_DAY;
        let mut noise = || 1e6 * (random.below(2_001) as f64 / 1_000.0 - 1.0);
        let leaked = |since: u64| 4e6 / A_DAY as f64 * (step - since) as f64;
        let mut send = |service: &str, instance: &str, kept: f64| {
            let stacks = format!("main;load;index {}\nmain;handle;remember {}\n", (100e6 + noise()) as u64, (20e6 + kept) as u64);
            push(&served, &format!("{service}.inuse_space{{instance={instance}}}"), at, &stacks);
        };
        for instance in ["a", "b"] {
            // Both restart on day 29; others each sixth day; and nothing restarts, but a small process comes.
            send("restarted", instance, leaked(if step >= 29 * A_DAY { 29 * A_DAY } else { 0 }));
            send("restarting", instance, leaked(step - step % (6 * A_DAY)));
            send("scaled", instance, leaked(0));
        }
        if step + 1 == DAYS * A_DAY {
            push(&served, "scaled.inuse_space{instance=c}", at, "main;load;index 20000000\n");
        }
    }
    let at = format!("localhost:{}", served.port("page"));
    let view: Value = json_of(longpole(&store).args(["growth", "--at", &at, "--since", "31d", "--format", "json"]));
    let growing = view["growing"].as_array().unwrap();
    let names: Vec<(&str, bool)> =
        growing.iter().map(|it| (it["service"].as_str().unwrap(), it["is_taken_back"].as_bool().unwrap())).collect();
    assert_eq!(names.iter().filter(|(_, is_taken_back)| *is_taken_back).count(), 2, "{view}");
    assert_eq!(names[0], ("scaled", false), "what is still there comes first: {view}");
    for state in growing {
        let per_day = state["per_day"].as_f64().unwrap();
        assert!((3.5e6..4.4e6).contains(&per_day), "{state}");
        assert_eq!(state["functions"][0]["function"], "remember", "{state}");
    }
    let text = longpole(&store).args(["growth", "restarted", "--at", &at, "--since", "31d"]).output().unwrap().stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("a day") && text.contains("in each of 2 processes until a restart takes it back: remember holds"), "{text}");
    served.stop();
}
