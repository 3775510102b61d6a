//! Story: a user pipes programs into each other, without any instrumentation, and asks which of them to make faster.
//! Guarantees: it is the one that works while the others wait for its output or for it to read theirs, whichever of them ends last; what it
//! saves is what the user gains with a program in its place that only copies; for root and for a plain user.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use longpole_testing::{holds, turn};
use serde_json::Value;

use crate::support::{Sandbox, can_sample, json, longpole, plain_user, skip};

/// How far the gain may lie from what was measured, as a part of the latter.
const TOLERANCE: f64 = 0.3;

/// With `PACK` in the place of the slow part.
const PIPELINES: [&str; 2] = ["cat text | PACK | wc -c", "PACK text | wc -c; sleep 0.2"];

#[test]
fn the_bottleneck_is_named_with_its_saving() {
    let sandbox = Sandbox::new();
    check(&sandbox, "the_bottleneck_is_named_with_its_saving", longpole);
}

#[test]
fn a_plain_user_gets_the_same_answer() {
    let sandbox = Sandbox::new();
    let Some(user) = plain_user(&sandbox, "a plain user gets the same answer of a pipeline") else { return };
    let recorder = user.longpole();
    check(&sandbox, "a plain user gets the same answer of a pipeline", |store| {
        let mut command = user.command(&recorder);
        command.arg("--store").arg(store);
        command
    });
}

fn check(sandbox: &Sandbox, story: &str, longpole: impl Fn(&Path) -> Command) {
    if !can_sample(story) {
        return;
    }
    let _turn = turn();
    let has_gzip = Command::new("gzip").arg("--version").output().is_ok_and(|out| out.status.success());
    if !has_gzip {
        return skip(story, "there is no gzip");
    }
    // Text that takes gzip about a second.
    let mut state = 1_u64;
    let letters = (0..24 << 20).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        b"etaoin shrdlucmfwypvbgkq"[(state >> 59) as usize % 24]
    });
    let text = sandbox.path("text");
    std::fs::write(&text, letters.collect::<Vec<u8>>()).unwrap();
    for pipeline in PIPELINES {
        // On a busy machine a pipeline takes twice its time in one run and not in the next.
        holds(2, 4, &format!("{story}: {pipeline}"), || attempt(sandbox, pipeline, &longpole));
    }
}

fn attempt(sandbox: &Sandbox, pipeline: &str, longpole: impl Fn(&Path) -> Command) -> Result<(), String> {
    let script = |slow: &str| pipeline.replace("PACK", slow).replace("text", &sandbox.path("text").to_string_lossy());
    let shell = |script: &str| {
        let started = Instant::now();
        let status = Command::new("sh").args(["-c", script]).stdout(Stdio::null()).status().unwrap();
        assert!(status.success());
        started.elapsed().as_secs_f64()
    };
    let slow = shell(&script("gzip -c"));
    let gain = slow - shell(&script("cat"));

    let store = sandbox.path("store");
    let run = longpole(&store).args(["run", "--", "sh", "-c", &script("gzip -c")]).stdin(Stdio::null()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let poles = json(longpole(&store).args(["poles", "--limit", "0", "--format", "json"]));
    let first = &poles["poles"][0];
    let seconds = |nanos: &Value| nanos.as_f64().unwrap() / 1e9;
    // Where others want the CPUs one run is slower than the next, in all its parts.
    let gain = gain * seconds(&poles["wall_nanos"]) / slow;
    let (low, high) = (seconds(&first["saves_if_zero_nanos"][0]), seconds(&first["saves_if_zero_nanos"][1]));
    let told = format!("{pipeline}: first {}, saves {low:.2} to {high:.2} s, true gain {gain:.2} s", first["name"]);
    let is_right = first["name"] == "gzip" && (low - gain).abs() <= TOLERANCE * gain && (high - gain).abs() <= TOLERANCE * gain;
    if is_right { Ok(()) } else { Err(told) }
}
