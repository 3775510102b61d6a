//! Story: somebody deploys with the real Pulumi, is shown the slow resource, makes it fast and deploys again.
//! Guarantees: the first pole is the slow resource, and what it would save is what the deployment saves in which it is fast. The deployment
//! and its construction: fixtures/pulumi/deployment/Pulumi.yaml.

use longpole_testing::{holds, turn};

use crate::support::Sandbox;
use crate::support::pulumi::{Stack, pulumi};

/// How long the slow resource takes. Long, so that what the machine does beside the deployment is little.
const DATABASE_MILLIS: i64 = 4800;

/// How long the other way to the resource that waits for both takes, beyond what this way takes without the slow one.
const OTHER_WAY_MILLIS: i64 = 700;

/// How far a saving may lie from what is then really saved.
const SAVING_TOLERANCE: f64 = 0.05;

/// Deployments of each kind in one attempt: other work of the machine makes some deployments, with Pulumi and its eleven processes, a second longer.
const PAIRS: usize = 3;

#[test]
fn the_slow_resource_is_first_and_saves_as_predicted() {
    let Some(pulumi) = pulumi() else { return };
    let sandbox = Sandbox::new();
    let _turn = turn();
    let mut round = 0;
    holds(2, 3, "the slow resource saves what it says", || {
        let (mut said, mut slow, mut fast) = (Vec::new(), Vec::new(), Vec::new());
        let mut answer = String::new();
        for _ in 0..PAIRS {
            round += 1;
            let stack = Stack::new(&sandbox, &format!("slow-{round}"), &pulumi, DATABASE_MILLIS);
            answer = stack.deploys(&[]);
            let summary = stack.asks(&["show"]);
            let pole = &summary["poles"][0];
            let called = [&pole["name"], &pole["context"]];
            assert!(
                called.iter().any(|name| name.as_str().is_some_and(|name| name.contains("database"))),
                "the first pole is {called:?}, and by construction it is the database:\n{answer}"
            );
            let [low, high] = [0, 1].map(|end| pole["saves_if_zero_nanos"][end].as_f64().unwrap());
            assert!(high - low <= high * SAVING_TOLERANCE, "Pulumi declares what waits for what, and the saving is a range:\n{answer}");
            said.push(high);
            slow.push(summary["wall_nanos"].as_f64().unwrap());

            let stack = Stack::new(&sandbox, &format!("fast-{round}"), &pulumi, 0);
            stack.deploys(&[]);
            fast.push(stack.asks(&["show"])["wall_nanos"].as_f64().unwrap());
        }
        // What else the machine does can only make a deployment longer.
        let [slow, fast] = [slow, fast].map(|walls| walls.into_iter().fold(f64::INFINITY, f64::min));
        said.sort_by(f64::total_cmp);
        let (said, saved) = (said[PAIRS / 2], slow - fast);
        if (said - saved).abs() <= saved * SAVING_TOLERANCE {
            return Ok(());
        }
        let built = ((DATABASE_MILLIS - OTHER_WAY_MILLIS) * 1_000_000) as f64;
        Err(format!("it says {said}, and {saved} was saved (by construction {built}):\n{answer}"))
    });
}
