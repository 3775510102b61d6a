//! Profiles of a server, added up.

use longpole_analysis::profile::{FunctionChange, FunctionSum, ProfileDiff, ProfileTree};
use longpole_model::Timestamp;
use longpole_model::profile::ProfileType;
use serde::{Deserialize, Serialize};

use super::shared::{listed, unix_nano};

/// A value of a profile, in the unit that the view names.
type ProfileValue = i64;

/// The types of profiles that a server has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileTypesView {
    /// First time that was searched, in nanoseconds since 1970.
    pub from_unix_nano: String,
    /// First time that was too late.
    pub to_unix_nano: String,
    /// Types, by name.
    pub types: Vec<ProfileTypeView>,
}

/// A type of profiles.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileTypeView {
    /// Its whole name, such as `process_cpu:cpu:nanoseconds:cpu:nanoseconds`.
    pub profile_type: String,
    /// What its values are of, such as `cpu`.
    pub sample_type: String,
    /// In what, such as `nanoseconds` or `bytes`.
    pub unit: String,
    /// Whether values are states, such as memory in use. Sums of states are averages over time.
    pub is_state: bool,
    /// Services with such profiles, by name.
    pub services: Vec<String>,
}

/// Profiles of a range of time, added up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileView {
    /// The query: a type with a selector behind it.
    pub query: String,
    /// What the values are of, such as `cpu`.
    pub sample_type: String,
    /// In what, such as `nanoseconds` or `bytes`.
    pub unit: String,
    /// Whether values are states, such as memory in use, and sums averages over time.
    pub is_state: bool,
    /// First time, in nanoseconds since 1970.
    pub from_unix_nano: String,
    /// First time that is too late.
    pub to_unix_nano: String,
    /// All of it.
    pub total: ProfileValue,
    /// Functions, the one that had most itself first.
    pub functions: Vec<ProfileFunctionView>,
    /// How many functions `functions` omits.
    pub truncated: usize,
    /// The calls.
    pub calls: ProfileCallsView,
}

/// A function of profiles.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileFunctionView {
    /// Name for people.
    pub function: String,
    /// Source file of all functions of this name; empty where none is known, or several are.
    pub file: String,
    /// How much it had itself.
    pub own: ProfileValue,
    /// How much it had with what it called; a function that calls itself counts once.
    pub total: ProfileValue,
}

/// Calls, each in front of those that it made: a row is an index into every list but `names`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProfileCallsView {
    /// Names.
    pub names: Vec<String>,
    /// Place of the name in `names`.
    pub name: Vec<u32>,
    /// Functions above it; 0 for those that nothing called.
    pub depth: Vec<u32>,
    /// How much it had with what it called.
    pub total: Vec<ProfileValue>,
    /// How much it had itself.
    pub own: Vec<ProfileValue>,
}

/// Values of profiles over time: row by row, steps without a value left out.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileValuesView {
    /// The query: a type with a selector behind it.
    pub query: String,
    /// What the values are of, such as `cpu`.
    pub sample_type: String,
    /// In what, such as `nanoseconds` or `bytes`.
    pub unit: String,
    /// Whether values are states, such as memory in use: of all processes together.
    pub is_state: bool,
    /// First time, in nanoseconds since 1970.
    pub from_unix_nano: String,
    /// First time that is too late.
    pub to_unix_nano: String,
    /// Length of a step.
    pub step_nanos: i64,
    /// Numbers of steps, in ascending order; the first step is 0.
    pub step: Vec<u32>,
    /// A state in the unit of the query; otherwise so much a second, of time a number of CPUs.
    pub value: Vec<f64>,
    /// Versions whose first profiles came in this time.
    pub versions: Vec<VersionView>,
}

/// A version of a service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct VersionView {
    /// The label that names it, such as `version="1.8"`.
    pub label: String,
    /// When its first profile came, in nanoseconds since 1970.
    pub first_unix_nano: String,
}

/// Profiles of two ranges of time, or of two queries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileDiffView {
    /// The query of the second.
    pub query: String,
    /// What the values are of.
    pub sample_type: String,
    /// In what.
    pub unit: String,
    /// Whether values are states, and sums averages over time.
    pub is_state: bool,
    /// The first.
    pub before: ProfileSideView,
    /// The second.
    pub after: ProfileSideView,
    /// Functions, the one whose own part of the whole changed most first.
    pub functions: Vec<FunctionChangeView>,
    /// How many functions `functions` omits.
    pub truncated: usize,
}

/// One side of a comparison.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ProfileSideView {
    /// First time, in nanoseconds since 1970.
    pub from_unix_nano: String,
    /// First time that is too late.
    pub to_unix_nano: String,
    /// All of it.
    pub total: ProfileValue,
}

/// A function in both.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FunctionChangeView {
    /// Name for people.
    pub function: String,
    /// How much it had itself, before and after.
    pub own: [ProfileValue; 2],
    /// How much it had with what it called, before and after.
    pub total: [ProfileValue; 2],
    /// Its own part of the whole, from 0 to 1, before and after.
    pub own_share: [f64; 2],
}

impl ProfileTypeView {
    /// A type, and the services that have it.
    pub fn new(of_type: &ProfileType, services: impl Iterator<Item = String>) -> ProfileTypeView {
        ProfileTypeView {
            profile_type: of_type.to_string(),
            sample_type: of_type.sample_type.as_str().to_owned(),
            unit: of_type.sample_unit.as_str().to_owned(),
            is_state: of_type.is_state(),
            services: services.collect(),
        }
    }
}

impl ProfileView {
    /// A sum: at most `limit` functions, and `nodes` calls.
    pub fn new(
        query: &str,
        of_type: &ProfileType,
        [from, until]: [Timestamp; 2],
        tree: &ProfileTree,
        limit: usize,
        nodes: usize,
    ) -> ProfileView {
        let functions = tree.functions();
        ProfileView {
            query: query.to_owned(),
            sample_type: of_type.sample_type.as_str().to_owned(),
            unit: of_type.sample_unit.as_str().to_owned(),
            is_state: of_type.is_state(),
            from_unix_nano: unix_nano(from),
            to_unix_nano: unix_nano(until),
            total: tree.total(),
            truncated: functions.len().saturating_sub(limit),
            functions: functions.iter().take(limit).map(ProfileFunctionView::new).collect(),
            calls: ProfileCallsView::new(&tree.cut(nodes)),
        }
    }
}

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;

impl ProfileValuesView {
    /// Values by the number of their step; versions with the time of their first profile.
    pub fn new(
        query: &str,
        of_type: &ProfileType,
        [from, until]: [Timestamp; 2],
        step_nanos: i64,
        values: &[(u32, f64)],
        versions: &[(String, Timestamp)],
    ) -> ProfileValuesView {
        // CPU time of a second is a number of CPUs.
        let scale = if of_type.is_time() && !of_type.is_state() { SECOND.recip() } else { 1.0 };
        let version = |(label, first): &(String, Timestamp)| VersionView { label: listed(label), first_unix_nano: unix_nano(*first) };
        ProfileValuesView {
            query: query.to_owned(),
            sample_type: of_type.sample_type.as_str().to_owned(),
            unit: of_type.sample_unit.as_str().to_owned(),
            is_state: of_type.is_state(),
            from_unix_nano: unix_nano(from),
            to_unix_nano: unix_nano(until),
            step_nanos,
            step: values.iter().map(|(step, _)| *step).collect(),
            value: values.iter().map(|(_, value)| value * scale).collect(),
            versions: versions.iter().map(version).collect(),
        }
    }
}

impl ProfileFunctionView {
    fn new(sum: &FunctionSum) -> ProfileFunctionView {
        ProfileFunctionView { function: listed(&sum.function), file: listed(&sum.file), own: sum.own, total: sum.total }
    }
}

impl ProfileCallsView {
    fn new(tree: &ProfileTree) -> ProfileCallsView {
        let mut columns = ProfileCallsView::default();
        let mut place_of = std::collections::HashMap::new();
        // The root is no function.
        for node in tree.nodes().into_iter().skip(1) {
            let next = u32::try_from(columns.names.len()).unwrap_or(u32::MAX);
            let place = *place_of.entry(node.name).or_insert(next);
            if place == next {
                columns.names.push(listed(node.name));
            }
            columns.name.push(place);
            columns.depth.push(u32::try_from(node.depth - 1).unwrap_or(u32::MAX));
            columns.total.push(node.total);
            columns.own.push(node.own);
        }
        columns
    }
}

impl ProfileDiffView {
    /// A comparison: at most `limit` functions.
    pub fn new(query: &str, of_type: &ProfileType, ranges: [[Timestamp; 2]; 2], diff: &ProfileDiff, limit: usize) -> ProfileDiffView {
        let side = |which: usize| ProfileSideView {
            from_unix_nano: unix_nano(ranges[which][0]),
            to_unix_nano: unix_nano(ranges[which][1]),
            total: diff.totals[which],
        };
        ProfileDiffView {
            query: query.to_owned(),
            sample_type: of_type.sample_type.as_str().to_owned(),
            unit: of_type.sample_unit.as_str().to_owned(),
            is_state: of_type.is_state(),
            before: side(0),
            after: side(1),
            truncated: diff.functions.len().saturating_sub(limit),
            functions: diff.functions.iter().take(limit).map(FunctionChangeView::new).collect(),
        }
    }
}

impl FunctionChangeView {
    pub(super) fn new(change: &FunctionChange) -> FunctionChangeView {
        FunctionChangeView { function: listed(&change.function), own: change.owns, total: change.totals, own_share: change.shares }
    }
}
