//! What grows on a server.

use longpole_model::Timestamp;
use longpole_model::profile::ProfileType;
use serde::{Deserialize, Serialize};

use super::shared::{listed, unix_nano};

/// States of services that grow, such as memory in use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServiceGrowthView {
    /// First time, in nanoseconds since 1970: of the profiles, if they begin later than what was searched.
    pub from_unix_nano: String,
    /// First time that is too late.
    pub to_unix_nano: String,
    /// What grows, the one that grew by the largest part of itself first.
    pub growing: Vec<GrowingStateView>,
    /// How many `growing` omits.
    pub truncated: usize,
    /// How many states do not grow, or not by more than they vary.
    pub steady: usize,
    /// How many have too few values to tell.
    pub too_short: usize,
}

/// A state of a service that grows: an average over its processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GrowingStateView {
    /// The service.
    pub service: String,
    /// What its profiles are of, with a selector: what to ask for them.
    pub query: String,
    /// What its values are of, such as `inuse_space`.
    pub sample_type: String,
    /// In what, such as `bytes`.
    pub unit: String,
    /// How many processes the numbers are an average of, at the end.
    pub processes: usize,
    /// How much more a day.
    pub per_day: f64,
    /// Between which that is: 95 %.
    pub per_day_range: [f64; 2],
    /// How much there was when the growth began, and at its end, by the line that fits best; what restarts took back counts.
    pub values: [f64; 2],
    /// How much there was at last.
    pub now: f64,
    /// Whether a restart, or another fall, took most of the growth back.
    pub is_taken_back: bool,
    /// When the growth began, in nanoseconds since 1970: when the first profile of `version` came, if there is one; null if it began before the range of time, or
    /// with the first profile.
    pub since_unix_nano: Option<String>,
    /// How much later the growth may have begun; 0 if that is known.
    pub since_within_nanos: i64,
    /// First time with a value.
    pub first_unix_nano: String,
    /// How long the growth is known.
    pub over_nanos: i64,
    /// The label of a version whose first profiles came when the growth began, such as `version="1.8"`; null if there is none.
    pub version: Option<String>,
    /// Functions that hold more at the end than at the begin, the one that holds the largest part of the growth first; at most 10.
    pub functions: Vec<GrowingFunctionView>,
}

/// A function that holds more than before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GrowingFunctionView {
    /// Name for people.
    pub function: String,
    /// How much more it holds in the last quarter of the growth than in its first.
    pub growth: f64,
    /// The part of the growth that this is, from 0 to 1.
    pub share: f64,
    /// Functions on the call path with most of it, the outermost first; at most 8, and the last of them called this one.
    pub callers: Vec<String>,
}

impl ServiceGrowthView {
    /// The growth in a range of time, the numbers of other states with it.
    pub fn new(
        [from, until]: [Timestamp; 2],
        growing: Vec<GrowingStateView>,
        truncated: usize,
        [steady, too_short]: [usize; 2],
    ) -> ServiceGrowthView {
        ServiceGrowthView { from_unix_nano: unix_nano(from), to_unix_nano: unix_nano(until), growing, truncated, steady, too_short }
    }
}

/// A growth in numbers, a second and in the unit of its type.
#[derive(Debug, Clone, Copy)]
pub struct GrowthNumbers {
    /// How much more a second.
    pub slope: f64,
    /// Between which that is.
    pub slope_range: [f64; 2],
    /// How much there was at its begin and its end.
    pub values: [f64; 2],
    /// How much there was at last.
    pub now: f64,
    /// Whether most of it was taken back.
    pub is_taken_back: bool,
    /// When it began; `None` if before the first value.
    pub since: Option<Timestamp>,
    /// How much later that may have been.
    pub since_within_nanos: i64,
    /// The first value.
    pub first: Timestamp,
    /// From its begin to the last value.
    pub over_nanos: i64,
}

/// Seconds of a day.
const DAY: f64 = 86_400.0;

impl GrowingStateView {
    /// A state that grows.
    pub fn new(service: &str, query: String, of_type: &ProfileType, numbers: GrowthNumbers, version: Option<String>) -> GrowingStateView {
        GrowingStateView {
            service: listed(service),
            query,
            sample_type: of_type.sample_type.as_str().to_owned(),
            unit: of_type.sample_unit.as_str().to_owned(),
            processes: 1,
            per_day: numbers.slope * DAY,
            per_day_range: numbers.slope_range.map(|slope| slope * DAY),
            values: numbers.values,
            now: numbers.now,
            is_taken_back: numbers.is_taken_back,
            since_unix_nano: numbers.since.map(unix_nano),
            since_within_nanos: numbers.since_within_nanos,
            first_unix_nano: unix_nano(numbers.first),
            over_nanos: numbers.over_nanos,
            version,
            functions: Vec::new(),
        }
    }
}

impl GrowingFunctionView {
    /// A function, and those above it.
    pub fn new(function: &str, growth: f64, share: f64, callers: &[&str]) -> GrowingFunctionView {
        GrowingFunctionView { function: listed(function), growth, share, callers: callers.iter().map(|name| listed(name)).collect() }
    }
}
