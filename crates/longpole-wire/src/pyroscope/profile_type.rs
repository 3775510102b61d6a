//! What a number of a profile is, and how Pyroscope names it.
//!
//! ```text
//! process_cpu:cpu:nanoseconds:cpu:nanoseconds      name : sample type : its unit : period type : its unit
//! memory:inuse_space:bytes:space:bytes             what is in use: a state, which is not added up over time
//! ```
//!
//! Three doors, three rules: pprof says its types and leaves out the name; `/ingest` puts the type behind the last point of the application's
//! name (`cart.alloc_space`); OpenTelemetry says a type and a period.

use longpole_model::profile::ProfileType;

use crate::number::saturated;
use crate::profile_import::{Profile, ValueType};

/// What the values of one type of a profile become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesType {
    /// Its name.
    pub profile_type: ProfileType,
    /// What to multiply each value by: samples of CPU time become nanoseconds.
    pub scale: i64,
    /// What to divide it by then: a million, if the format counted in millionths.
    pub divisor: i64,
}

impl SeriesType {
    fn of(parts: [&str; 5]) -> Self {
        SeriesType { profile_type: ProfileType::of_parts(parts), scale: 1, divisor: 1 }
    }

    /// What a value of the profile is in the unit of the type.
    pub fn value(&self, value: i64) -> i64 {
        saturated(i128::from(value) * i128::from(self.scale) / i128::from(self.divisor.max(1)))
    }
}

/// The types of pprof, one for each of its values. `name` is the label `__name__` of the series, if the sender gave one.
pub fn of_pprof(name: Option<&str>, profile: &Profile) -> Vec<SeriesType> {
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| name_of(profile));
    let of = |place: usize, kind: &ValueType| {
        let period = profile.period_of(place).map_or(("", ""), |(kind, _)| (kind.name.as_str(), kind.unit.as_str()));
        SeriesType::of([name, &kind.name, &kind.unit, period.0, period.1])
    };
    profile.types.iter().enumerate().map(|(place, kind)| of(place, kind)).collect()
}

/// The name that Pyroscope gives to pprof without one, by its types. Profiles of locks and of other blocking calls look alike in Go; they are called `mutex` here.
fn name_of(profile: &Profile) -> &str {
    let has = |wanted: &[&str]| profile.types.iter().any(|kind| wanted.contains(&kind.name.as_str()));
    let counts_cpu = (0..profile.types.len()).any(|place| profile.period_of(place).is_some_and(|(kind, _)| kind.name == "cpu"));
    let has_memory = profile.types.iter().any(|kind| kind.name.starts_with("alloc_") || kind.name.starts_with("inuse_"));
    if has(&["cpu"]) || counts_cpu {
        "process_cpu"
    } else if has_memory || has(&["space", "objects", "live"]) {
        "memory"
    } else if has(&["contentions", "delay"]) {
        "mutex"
    } else if has(&["goroutine", "goroutines"]) {
        "goroutines"
    } else if has(&["wall"]) {
        "wall"
    } else {
        profile.types.first().map_or("", |kind| &kind.name)
    }
}

/// The types of profiles of OpenTelemetry, one for each of its values. A sample of `samples/count` with a period of CPU time is that time.
pub fn of_otlp(profile: &Profile) -> Vec<SeriesType> {
    let of = |place: usize, kind: &ValueType| {
        let period = profile.period_of(place);
        let (period_type, each) = period.map_or((ValueType::default(), 1), |(kind, each)| (kind.clone(), *each));
        let is_cpu = kind.name == "samples" && kind.unit == "count" && period_type.name == "cpu" && period_type.unit == "nanoseconds";
        if is_cpu {
            return SeriesType { scale: each, ..SeriesType::of(CPU) };
        }
        let name = match kind.name.as_str() {
            "cpu" => "process_cpu",
            "alloc_objects" | "alloc_space" | "inuse_objects" | "inuse_space" | "objects" | "space" => "memory",
            "contentions" | "delay" => "mutex",
            "goroutine" => "goroutines",
            other => other,
        };
        SeriesType::of([name, &kind.name, &kind.unit, &period_type.name, &period_type.unit])
    };
    profile.types.iter().enumerate().map(|(place, kind)| of(place, kind)).collect()
}

/// CPU time.
const CPU: [&str; 5] = ["process_cpu", "cpu", "nanoseconds", "cpu", "nanoseconds"];

/// What may stand behind the last point of the name of an application, and the type that it is. Pyroscope's page shows the same names, SDKs give
/// them to types of pprof in `sample_type_config`, and the reader of Java's recordings to its types.
const SUFFIXES: [(&str, [&str; 5]); 22] = [
    ("cpu", CPU),
    ("itimer", CPU),
    ("wall", ["wall", "wall", "nanoseconds", "wall", "nanoseconds"]),
    ("off_cpu", ["off_cpu", "off_cpu", "nanoseconds", "", ""]),
    ("alloc_objects", ["memory", "alloc_objects", "count", "space", "bytes"]),
    ("alloc_space", ["memory", "alloc_space", "bytes", "space", "bytes"]),
    ("inuse_objects", ["memory", "inuse_objects", "count", "space", "bytes"]),
    ("inuse_space", ["memory", "inuse_space", "bytes", "space", "bytes"]),
    ("alloc_in_new_tlab_objects", ["memory", "alloc_in_new_tlab_objects", "count", "space", "bytes"]),
    ("alloc_in_new_tlab_bytes", ["memory", "alloc_in_new_tlab_bytes", "bytes", "space", "bytes"]),
    ("alloc_outside_tlab_objects", ["memory", "alloc_outside_tlab_objects", "count", "space", "bytes"]),
    ("alloc_outside_tlab_bytes", ["memory", "alloc_outside_tlab_bytes", "bytes", "space", "bytes"]),
    ("live", ["memory", "live", "count", "objects", "count"]),
    ("goroutine", ["goroutines", "goroutine", "count", "goroutine", "count"]),
    ("goroutines", ["goroutines", "goroutine", "count", "goroutine", "count"]),
    ("mutex_count", ["mutex", "contentions", "count", "contentions", "count"]),
    ("mutex_duration", ["mutex", "delay", "nanoseconds", "contentions", "count"]),
    ("lock_count", ["mutex", "contentions", "count", "contentions", "count"]),
    ("lock_duration", ["mutex", "delay", "nanoseconds", "contentions", "count"]),
    ("block_count", ["block", "contentions", "count", "contentions", "count"]),
    ("block_duration", ["block", "delay", "nanoseconds", "contentions", "count"]),
    ("exceptions", ["exceptions", "exceptions", "count", "", ""]),
];

/// A suffix and its type.
fn known_suffix(name: &str) -> Option<&'static (&'static str, [&'static str; 5])> {
    SUFFIXES.iter().find(|(suffix, _)| *suffix == name)
}

/// The name of an application without the type behind its last point, and that type: `cart` and `cpu` of `cart.cpu`.
pub fn split_app_name(app: &str) -> (&str, Option<&'static str>) {
    let split = app.rsplit_once('.').filter(|(service, _)| !service.is_empty());
    let known = split.and_then(|(service, end)| Some((service, known_suffix(end)?.0)));
    known.map_or((app, None), |(service, suffix)| (service, Some(suffix)))
}

/// What `/ingest` says of a profile beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct IngestUnits<'a> {
    /// The type that [`split_app_name`] found: `cpu`.
    pub suffix: Option<&'a str>,
    /// `samples`, `objects`, `bytes`, `goroutines`, `lock_samples`, `lock_nanoseconds`.
    pub units: Option<&'a str>,
    /// Samples a second; 0 stands for 100, as SDKs take them.
    pub sample_rate: u32,
    /// Whether values of several profiles have an average.
    pub is_average: bool,
}

/// Samples a second if the sender says nothing.
const SAMPLE_RATE: u32 = 100;

/// The types of a profile that came to `/ingest` in any format except pprof: one for each of its values.
pub fn of_ingest(said: &IngestUnits<'_>, profile: &Profile) -> Vec<SeriesType> {
    let wanted = said.suffix.or_else(|| suffix_of_units(said));
    let of = |kind: &ValueType| {
        // A recording of Java says what each of its types is.
        if let Some((_, parts)) = known_suffix(&kind.name).filter(|(_, parts)| parts[2] == kind.unit) {
            return SeriesType::of(*parts);
        }
        let suffix = match kind.unit.as_str() {
            // speedscope names its unit.
            "nanoseconds" => wanted.filter(|suffix| unit_of(suffix) == "nanoseconds").unwrap_or("cpu"),
            "bytes" => {
                wanted.filter(|suffix| unit_of(suffix) == "bytes").unwrap_or(if said.is_average { "inuse_space" } else { "alloc_space" })
            }
            _ => wanted.unwrap_or("cpu"),
        };
        let parts = known_suffix(suffix).map_or(CPU, |(_, parts)| *parts);
        let is_counted_in_samples =
            parts[2] == "nanoseconds" && kind.unit != "nanoseconds" && !matches!(said.units, Some("nanoseconds" | "lock_nanoseconds"));
        let rate = if said.sample_rate == 0 { SAMPLE_RATE } else { said.sample_rate };
        let is_sampled = is_counted_in_samples && matches!(parts[0], "process_cpu" | "wall" | "off_cpu");
        let scale = if is_sampled { i64::from((1_000_000_000 / rate).max(1)) } else { 1 };
        let divisor = if kind.unit == "millionths" { 1_000_000 } else { 1 };
        SeriesType { scale, divisor, ..SeriesType::of(parts) }
    };
    profile.types.iter().map(of).collect()
}

fn unit_of(suffix: &str) -> &'static str {
    known_suffix(suffix).map_or("", |(_, parts)| parts[2])
}

/// The type that a unit of `/ingest` stands for.
fn suffix_of_units(said: &IngestUnits<'_>) -> Option<&'static str> {
    Some(match (said.units?, said.is_average) {
        ("objects", false) => "alloc_objects",
        ("objects", true) => "inuse_objects",
        ("bytes", false) => "alloc_space",
        ("bytes", true) => "inuse_space",
        ("goroutines", _) => "goroutines",
        ("lock_samples", _) => "mutex_count",
        ("lock_nanoseconds", _) => "mutex_duration",
        ("exceptions", _) => "exceptions",
        _ => return None,
    })
}

/// The name of pprof's series that the names to show of its types imply: `block` of `block_count`. They come with it in `sample_type_config`.
pub fn name_of_shown<'a>(shown: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    shown.into_iter().find_map(known_suffix).map(|(_, parts)| parts[0])
}

#[cfg(test)]
mod tests {
    use longpole_model::profile::ProfileTypeError;
    use proptest::prelude::*;

    use super::*;

    fn profile(types: &[(&str, &str)], period: Option<(&str, &str, i64)>) -> Profile {
        let kind = |name: &str, unit: &str| ValueType { name: name.to_owned(), unit: unit.to_owned() };
        let types = types.iter().map(|(name, unit)| kind(name, unit)).collect();
        Profile { types, period: period.map(|(name, unit, each)| (kind(name, unit), each)), ..Profile::default() }
    }

    fn names(types: Vec<SeriesType>) -> Vec<(String, i64)> {
        types.into_iter().map(|it| (it.profile_type.to_string(), it.scale)).collect()
    }

    #[test]
    fn a_type_has_five_parts() {
        for text in ["process_cpu:cpu:nanoseconds:cpu:nanoseconds", "memory:alloc_in_new_tlab_bytes:bytes::"] {
            assert_eq!(text.parse::<ProfileType>().unwrap().to_string(), text);
        }
        let older: ProfileType = "memory:alloc_space:bytes:space:bytes:delta".parse().unwrap();
        assert_eq!(older.to_string(), "memory:alloc_space:bytes:space:bytes");
        for (text, parts) in [("cpu", 1), ("", 1), ("a:b:c:d", 4), ("a:b:c:d:e:f", 6), (":b:c:d:e", 5)] {
            assert_eq!(text.parse::<ProfileType>(), Err(ProfileTypeError { parts }), "{text}");
        }
        let said = "cpu".parse::<ProfileType>().unwrap_err().to_string();
        assert_eq!(said, "a profile type has five parts, as in process_cpu:cpu:nanoseconds:cpu:nanoseconds; this one has 1");
    }

    #[test]
    fn memory_in_use_and_goroutines_are_states() {
        let is_state = |text: &str| text.parse::<ProfileType>().unwrap().is_state();
        for state in
            ["memory:inuse_space:bytes:space:bytes", "memory:inuse_objects:count:space:bytes", "goroutines:goroutine:count:goroutine:count"]
        {
            assert!(is_state(state), "{state}");
        }
        for sum in [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "memory:alloc_space:bytes:space:bytes",
            "mutex:delay:nanoseconds:contentions:count",
        ] {
            assert!(!is_state(sum), "{sum}");
        }
    }

    #[test]
    fn pprof_has_the_names_of_its_types() {
        let go_cpu = profile(&[("samples", "count"), ("cpu", "nanoseconds")], Some(("cpu", "nanoseconds", 10_000_000)));
        let expected = ["process_cpu:samples:count:cpu:nanoseconds", "process_cpu:cpu:nanoseconds:cpu:nanoseconds"];
        assert_eq!(names(of_pprof(None, &go_cpu)), expected.map(|name| (name.to_owned(), 1)));
        let go_heap = profile(&[("alloc_space", "bytes"), ("inuse_space", "bytes")], Some(("space", "bytes", 524_288)));
        let expected = ["memory:alloc_space:bytes:space:bytes", "memory:inuse_space:bytes:space:bytes"];
        assert_eq!(names(of_pprof(None, &go_heap)), expected.map(|name| (name.to_owned(), 1)));
        // The sender decides, if it says something.
        let go_block = profile(&[("delay", "nanoseconds")], Some(("contentions", "count", 1)));
        for (said, expected) in [(Some("block"), "block"), (None, "mutex"), (name_of_shown(["block_duration"]), "block")] {
            assert_eq!(names(of_pprof(said, &go_block))[0].0, format!("{expected}:delay:nanoseconds:contentions:count"));
        }
    }

    #[test]
    fn samples_of_opentelemetry_are_the_time_of_their_period() {
        let mut of_agent = profile(&[("samples", "count"), ("off_cpu", "nanoseconds")], None);
        of_agent.periods = vec![Some((ValueType { name: "cpu".to_owned(), unit: "nanoseconds".to_owned() }, 52_631_578)), None];
        let expected = [("process_cpu:cpu:nanoseconds:cpu:nanoseconds", 52_631_578), ("off_cpu:off_cpu:nanoseconds::", 1)];
        assert_eq!(names(of_otlp(&of_agent)), expected.map(|(name, scale)| (name.to_owned(), scale)));
    }

    #[test]
    fn the_name_of_an_application_ends_with_a_type() {
        let folded = profile(&[("samples", "count")], None);
        let of = |app: &str, units: Option<&str>, sample_rate, is_average| {
            let (service, suffix) = split_app_name(app);
            let (name, scale) = names(of_ingest(&IngestUnits { suffix, units, sample_rate, is_average }, &folded)).remove(0);
            (service.to_owned(), name, scale)
        };
        let expected = |service: &str, name: &str, scale| (service.to_owned(), name.to_owned(), scale);
        let cpu = "process_cpu:cpu:nanoseconds:cpu:nanoseconds";
        assert_eq!(of("shop.cart.cpu", Some("samples"), 50, false), expected("shop.cart", cpu, 20_000_000));
        assert_eq!(of("shop.cart", None, 0, false), expected("shop.cart", cpu, 10_000_000));
        assert_eq!(of("cart.cpu", Some("nanoseconds"), 100, false), expected("cart", cpu, 1));
        assert_eq!(of("cart.inuse_space", Some("bytes"), 0, true), expected("cart", "memory:inuse_space:bytes:space:bytes", 1));
        assert_eq!(of("cart", Some("objects"), 0, true), expected("cart", "memory:inuse_objects:count:space:bytes", 1));
        assert_eq!(of("cart", Some("lock_nanoseconds"), 0, false), expected("cart", "mutex:delay:nanoseconds:contentions:count", 1));
        assert_eq!((split_app_name(".cpu"), split_app_name("cpu")), ((".cpu", None), ("cpu", None)));
    }

    #[test]
    fn a_recording_of_java_says_its_types() {
        let jfr =
            profile(&[("cpu", "nanoseconds"), ("mutex_count", "count"), ("mutex_duration", "nanoseconds"), ("wall", "nanoseconds")], None);
        let said = IngestUnits { suffix: Some("cpu"), sample_rate: 100, ..IngestUnits::default() };
        let expected = [
            "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
            "mutex:contentions:count:contentions:count",
            "mutex:delay:nanoseconds:contentions:count",
            "wall:wall:nanoseconds:wall:nanoseconds",
        ];
        assert_eq!(names(of_ingest(&said, &jfr)), expected.map(|name| (name.to_owned(), 1)));
    }

    #[test]
    fn a_format_that_says_its_unit_keeps_it() {
        let speedscope = profile(&[("time", "nanoseconds"), ("space", "bytes")], None);
        let said = IngestUnits { suffix: Some("wall"), ..IngestUnits::default() };
        let expected = [("wall:wall:nanoseconds:wall:nanoseconds", 1), ("memory:alloc_space:bytes:space:bytes", 1)];
        assert_eq!(names(of_ingest(&said, &speedscope)), expected.map(|(name, scale)| (name.to_owned(), scale)));
    }

    proptest! {
        #[test]
        fn any_text_is_a_type_or_refused(text in "[a-z:]{0,20}|.{0,20}") {
            if let Ok(read) = text.parse::<ProfileType>() {
                prop_assert_eq!(read.to_string().parse::<ProfileType>().unwrap(), read);
            }
        }
    }
}
