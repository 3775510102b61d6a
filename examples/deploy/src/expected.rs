//! The saving of fixing each pole, by construction: each resource starts when the last of its dependencies exists, and takes
//! the time in [`timing`].

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::program::{Resource, resources};
use crate::timing;

/// A deliberate pole.
#[derive(Debug, Serialize)]
pub struct Pole {
    /// Name of the span that spends the time: the provider's. The engine's span around it, `create <resource>`, is as long.
    pub name: String,
    /// Name of the resource.
    pub resource: &'static str,
    /// Function that burns the time; `null` if none does.
    pub function: Option<&'static str>,
    /// What it spends the time on.
    pub reason: &'static str,
    /// Its duration.
    pub duration_nanos: u64,
    /// How much sooner the deployment would end if it took no time.
    pub saves_nanos: u64,
    /// The same if it took half the time.
    pub saves_half_nanos: u64,
}

/// The poles of the program, largest saving first.
pub fn poles() -> Vec<Pole> {
    let planted = [
        ("web-bundle", Some("compress_bundle"), "on-CPU"),
        ("api-service", None, "blocked on a lock"),
        ("certificate", None, "remote wait"),
    ];
    let program = resources();
    let whole = makespan(&program, |_| 1.0);
    let pole = |(name, function, reason): (&'static str, _, _)| {
        let saved = |factor| nanos(whole - makespan(&program, |resource| if resource == name { factor } else { 1.0 }));
        let resource = program.iter().find(|resource| resource.name == name);
        let duration = resource.and_then(|resource| timing::create(&resource.resource_type)).unwrap_or_default();
        Pole {
            name: format!("{}/create {name}", resource.map_or("", Resource::provider)),
            resource: name,
            function,
            reason,
            duration_nanos: nanos(duration),
            saves_nanos: saved(0.0),
            saves_half_nanos: saved(0.5),
        }
    };
    let mut poles: Vec<Pole> = planted.into_iter().map(pole).collect();
    poles.sort_by_key(|pole| std::cmp::Reverse(pole.saves_nanos));
    poles
}

/// The time at which the last resource exists, if each takes its time times a factor.
fn makespan(program: &[Resource], factor: impl Fn(&str) -> f64) -> Duration {
    let mut done: HashMap<&str, Duration> = HashMap::new();
    for resource in program {
        let start = resource.depends_on.iter().map(|name| done[name.as_str()]).max().unwrap_or_default();
        let takes = timing::create(&resource.resource_type).unwrap_or_default().mul_f64(factor(&resource.name));
        done.insert(&resource.name, start + takes);
    }
    done.into_values().max().unwrap_or_default()
}

fn nanos(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the README, which computes them by hand.
    #[test]
    fn the_poles_save_what_the_readme_says() {
        let millis: Vec<(String, u64, u64)> =
            poles().into_iter().map(|pole| (pole.name, pole.saves_nanos / 1_000_000, pole.saves_half_nanos / 1_000_000)).collect();
        let expected =
            [("compute/create web-bundle", 950, 600), ("compute/create api-service", 600, 300), ("cloud/create certificate", 500, 400)];
        assert_eq!(millis, expected.map(|(name, zero, half)| (name.to_owned(), zero, half)));
        assert_eq!(makespan(&resources(), |_| 1.0), Duration::from_millis(2_800));
    }

    #[test]
    fn dependencies_are_declared_before_they_are_used_and_all_types_are_known() {
        let program = resources();
        assert_eq!(program.len(), 12);
        for (at, resource) in program.iter().enumerate() {
            assert!(timing::create(&resource.resource_type).is_some(), "{resource:?}");
            assert!(resource.depends_on.iter().all(|name| program[..at].iter().any(|earlier| earlier.name == *name)), "{resource:?}");
        }
    }
}
