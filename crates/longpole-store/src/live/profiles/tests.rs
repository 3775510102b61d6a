//! Stories of profiles in a live store, on real files.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use longpole_model::profile::{LinkScope, ProfileBatch, ProfileSeries, ProfileValue, ProfiledSpan};
use longpole_model::{SpanId, Timestamp};

use super::ProfileFilter;
use crate::error::StoreError;
use crate::live::{LiveFigures, LiveOptions, LiveStore};
use crate::query_limits::QueryLimits;
use crate::store::Store;
use crate::testing::{self, Directory, profile_batch};

const NOW: Timestamp = Timestamp(1_795_867_200_000_000_000);
const SECOND: i64 = 1_000_000_000;

fn open(directory: &Directory) -> LiveStore {
    let store = Store::open(directory.path()).unwrap();
    let (live, problems) = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, _| Vec::new()).unwrap();
    assert_eq!(problems, Vec::<String>::new());
    live
}

/// What a service's stacks had between two times, in seconds from `NOW` on: the root first.
fn stacks(live: &LiveStore, filter: &ProfileFilter<'_>) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    let add = |part: super::ProfilePart| {
        for ((_, stack), sum) in &part.sums {
            let names: Vec<&str> = part.stacks.frames_of(*stack).map(|frame| frame.function.as_str()).collect();
            *sums.entry(names.join(";")).or_default() += sum;
        }
        Ok(())
    };
    live.each_profile_part(filter, add).unwrap();
    sums
}

fn at(seconds: i64) -> Timestamp {
    Timestamp(NOW.unix_nanos() + seconds * SECOND)
}

fn cart(series: &ProfileSeries) -> bool {
    series.label("service_name").is_some_and(|service| service == "cart")
}

fn of_cart(from: i64, until: i64) -> ProfileFilter<'static> {
    ProfileFilter { series: &cart, from: at(from), until: at(until), spans: None, traces: None }
}

fn batch(service: &str, seconds: i64, stacks: &[(&str, i64)]) -> ProfileBatch {
    profile_batch(service, at(seconds).unix_nanos(), stacks)
}

fn expected(stacks: &[(&str, i64)]) -> BTreeMap<String, i64> {
    stacks.iter().map(|(stack, sum)| ((*stack).to_owned(), *sum)).collect()
}

#[test]
fn profiles_are_found_at_once_and_after_each_step_of_their_way() {
    let directory = Directory::new();
    let live = open(&directory);
    live.append_profiles(NOW, &batch("cart", 0, &[("main;parse", 30), ("main", 10)])).unwrap();
    live.append_profiles(NOW, &batch("shop", 5, &[("main;parse", 7)])).unwrap();
    live.append_profiles(NOW, &batch("cart", 10, &[("main;parse", 5), ("main;render", 2)])).unwrap();
    let all = expected(&[("main", 10), ("main;parse", 35), ("main;render", 2)]);
    let check = |live: &LiveStore| {
        assert_eq!(stacks(live, &of_cart(0, 60)), all);
        assert_eq!(stacks(live, &of_cart(0, 10)), expected(&[("main", 10), ("main;parse", 30)]), "the end is too late");
        assert_eq!(stacks(live, &of_cart(10, 11)), expected(&[("main;parse", 5), ("main;render", 2)]));
        assert!(stacks(live, &of_cart(60, 90)).is_empty());
        let every = |_: &ProfileSeries| true;
        let between = |from, until| ProfileFilter { series: &every, from: at(from), until: at(until), spans: None, traces: None };
        let services = live.profile_series(&between(0, 60)).unwrap();
        let services: Vec<&str> = services.iter().map(|series| series.label("service_name").unwrap().as_str()).collect();
        assert_eq!(services, ["cart", "shop"]);
        assert_eq!(live.profile_series(&between(7, 60)).unwrap().len(), 1);
        let mut points = BTreeMap::new();
        let add = |(), value: &ProfileValue| {
            *points.entry(value.time).or_default() += value.value;
            Ok(())
        };
        live.each_profile_value(&of_cart(0, 60), |_| Ok(()), add).unwrap();
        assert_eq!(points, BTreeMap::from([(at(0), 40), (at(10), 7)]));
    };
    check(&live);
    // Another server finds them in the log of this one.
    drop(live);
    let live = open(&directory);
    check(&live);
    // In a segment that has no spans.
    live.maintain(NOW, true).unwrap();
    assert_eq!(live.figures(), LiveFigures { head_values: 0, segment_values: 5, segments: 1, ..live.figures() });
    check(&live);
    drop(live);
    let live = open(&directory);
    check(&live);
    // In a segment and the head.
    live.append_profiles(NOW, &batch("cart", 20, &[("main;parse", 1)])).unwrap();
    assert_eq!(stacks(&live, &of_cart(0, 60)), expected(&[("main", 10), ("main;parse", 36), ("main;render", 2)]));
}

#[test]
fn the_values_of_a_span_are_found_by_it() {
    let directory = Directory::new();
    let live = open(&directory);
    let mut linked = batch("cart", 0, &[("main;parse", 30), ("main;render", 10)]);
    let span_id = testing::span_id(7).unwrap();
    linked.values[0].span =
        Some(ProfiledSpan { trace_id: Some(testing::trace_id(3)), span_id: Some(span_id), scope: LinkScope::LocalRoot });
    live.append_profiles(NOW, &linked).unwrap();
    let spans = HashSet::from([span_id]);
    let traces = HashSet::from([testing::trace_id(3)]);
    let other: HashSet<SpanId> = HashSet::from([testing::span_id(8).unwrap()]);
    for _ in ["in the head", "in a segment"] {
        let all = of_cart(0, 60);
        assert_eq!(stacks(&live, &ProfileFilter { spans: Some(&spans), ..all }), expected(&[("main;parse", 30)]));
        assert_eq!(stacks(&live, &ProfileFilter { traces: Some(&traces), ..all }), expected(&[("main;parse", 30)]));
        assert!(stacks(&live, &ProfileFilter { spans: Some(&other), ..all }).is_empty());
        live.maintain(NOW, true).unwrap();
    }
}

#[test]
fn a_query_takes_no_memory_for_the_stacks_of_others() {
    let directory = Directory::new();
    let live = open(&directory);
    let many: Vec<String> = (0..2_000).map(|number| format!("main;f{number};g{number}")).collect();
    let many: Vec<(&str, i64)> = many.iter().map(|stack| (stack.as_str(), 1)).collect();
    live.append_profiles(NOW, &batch("shop", 0, &many)).unwrap();
    live.append_profiles(NOW, &batch("cart", 0, &[("main;parse", 30)])).unwrap();
    for _ in ["in the head", "in a segment"] {
        let mut sizes = Vec::new();
        live.each_profile_part(&of_cart(0, 60), |part| {
            sizes.push((part.stacks.stacks.len(), part.stacks.locations.len()));
            Ok(())
        })
        .unwrap();
        assert_eq!(sizes, [(1, 2)]);
        live.maintain(NOW, true).unwrap();
    }
}

/// A selector with 64 regular expressions takes a second for each series, and finds none of them.
#[test]
fn a_query_ends_between_two_series() {
    let directory = Directory::new();
    let live = open(&directory);
    for number in 0..3 {
        live.append_profiles(NOW, &batch(&format!("service {number}"), 0, &[("main", 1)])).unwrap();
    }
    for _ in ["in the head", "in a segment"] {
        for is_of_values in [false, true] {
            let limits = QueryLimits::default();
            let matched = AtomicUsize::new(0);
            let slow = |_: &ProfileSeries| {
                limits.stop.stop();
                matched.fetch_add(1, Ordering::Relaxed);
                false
            };
            let (query, filter) = (live.for_query(limits.clone()), ProfileFilter { series: &slow, ..of_cart(0, 60) });
            let ended = match is_of_values {
                true => query.each_profile_value(&filter, |_| Ok(()), |(), _| Ok(())),
                false => query.profile_series(&filter).map(drop),
            };
            assert!(matches!(ended, Err(StoreError::Stopped)), "{ended:?}");
            assert_eq!(matched.load(Ordering::Relaxed), 1);
        }
        live.maintain(NOW, true).unwrap();
    }
}

#[test]
fn profiles_that_take_much_memory_become_a_segment() {
    let directory = Directory::new();
    let store = Store::open(directory.path()).unwrap();
    let options = LiveOptions { generation_profile_bytes: 1_000, ..LiveOptions::default() };
    let (live, _) = LiveStore::open(&store, options, NOW, &mut |_, _| Vec::new()).unwrap();
    live.append_profiles(NOW, &batch("cart", 0, &[("main;parse", 30), ("main;render", 5), ("main;handle;trim", 1)])).unwrap();
    live.maintain(NOW, false).unwrap();
    assert_eq!((live.figures().head_values, live.figures().segment_values), (0, 3));
}

#[test]
fn a_list_that_is_lost_is_made_again_with_the_profiles() {
    let directory = Directory::new();
    let live = open(&directory);
    live.append_profiles(NOW, &batch("cart", 0, &[("main;parse", 30)])).unwrap();
    live.maintain(NOW, true).unwrap();
    let manifest = live.shared.folders.manifest.clone();
    drop(live);
    std::fs::remove_dir_all(manifest).unwrap();
    let store = Store::open(directory.path()).unwrap();
    let (live, _) = LiveStore::open(&store, LiveOptions::default(), NOW, &mut |_, _| Vec::new()).unwrap();
    assert_eq!(stacks(&live, &of_cart(0, 60)), expected(&[("main;parse", 30)]));
}
