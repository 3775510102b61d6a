//! Programs without spans: the answer is right for whatever runs.

use serde_json::Value;

use crate::support::{Sandbox, can_sample, json, longpole};

/// The time on the path of all that a view of poles names, the rest included.
fn on_path(view: &Value) -> i64 {
    let of_poles = view["poles"].as_array().unwrap().iter().map(|pole| pole["on_path_nanos"].as_i64().unwrap());
    of_poles.sum::<i64>() + view["truncated"]["on_path_nanos"].as_i64().unwrap() + view["between_nanos"].as_i64().unwrap()
}

#[test]
fn a_script_that_works_and_then_waits_is_named_beside_its_child() {
    if !can_sample("a_script_that_works_and_then_waits_is_named_beside_its_child") {
        return;
    }
    let sandbox = Sandbox::new();
    let store = sandbox.path("store");
    let longpole = || longpole(&store);
    // Less than half of the run is the script's own.
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 1";
    let out = longpole().args(["run", "--", "sh", "-c", script]).output().unwrap();
    assert!(out.status.success());
    let summary = json(longpole().args(["show", "--format", "json"]));
    let wall = summary["wall_nanos"].as_i64().unwrap();
    let poles = summary["poles"].as_array().unwrap();
    let names: Vec<&str> = poles.iter().map(|pole| pole["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sleep", "sh"], "{summary}");
    // It cannot save what its child takes.
    let own = &poles[1];
    assert_eq!(own["saves_if_zero_nanos"], own["saves_own_nanos"]);
    assert!(own["saves_if_zero_nanos"][1].as_i64() <= own["on_path_nanos"].as_i64(), "{own}");
    // To the nanosecond, however short the list is.
    assert_eq!(on_path(&summary), wall);
    assert_eq!(on_path(&json(longpole().args(["poles", "--limit", "1", "--format", "json"]))), wall);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(said.contains("sh · run"), "{said}");
}
