use proptest::prelude::*;

use super::super::ProfileSample;
use super::*;
use crate::protobuf::{put_bytes, put_integer, put_message};

fn put(out: &mut Vec<u8>, number: u64) {
    crate::leb128::put(out, number);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(3);
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// An event: its size, which counts itself, in two bytes, its class, and what is inside.
fn put_event(out: &mut Vec<u8>, class: u64, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut inside = Vec::new();
    put(&mut inside, class);
    fill(&mut inside);
    let size = inside.len() + 4;
    out.extend([size as u8 & 0x7f | 0x80, (size >> 7) as u8 & 0x7f | 0x80, (size >> 14) as u8 & 0x7f | 0x80, 0]);
    out.extend(inside);
}

/// A field: its name, the number of its class, and whether it is a constant or a list.
type TestField = (&'static str, u64, &'static str);

/// Classes as async-profiler writes them: number, name, fields.
const CLASSES: &[(u64, &str, &[TestField])] = &[
    (4, "boolean", &[]),
    (10, "int", &[]),
    (11, "long", &[]),
    (20, "java.lang.String", &[]),
    (21, "java.lang.Class", &[("name", 30, "constant")]),
    (22, "java.lang.Thread", &[("osName", 20, ""), ("osThreadId", 11, "")]),
    (26, "jdk.types.StackTrace", &[("truncated", 4, ""), ("frames", 27, "list")]),
    (27, "jdk.types.StackFrame", &[("method", 28, "constant"), ("lineNumber", 10, "")]),
    (28, "jdk.types.Method", &[("type", 21, "constant"), ("name", 30, "constant")]),
    (30, "jdk.types.Symbol", &[("string", 20, "")]),
    (
        101,
        "jdk.ExecutionSample",
        &[
            ("startTime", 11, ""),
            ("sampledThread", 22, "constant"),
            ("stackTrace", 26, "constant"),
            ("spanId", 11, ""),
            ("contextId", 11, ""),
        ],
    ),
    (102, "jdk.ObjectAllocationInNewTLAB", &[("stackTrace", 26, "constant"), ("allocationSize", 11, ""), ("tlabSize", 11, "")]),
    (104, "jdk.JavaMonitorEnter", &[("duration", 11, ""), ("stackTrace", 26, "constant")]),
    (105, "jdk.ActiveSetting", &[("id", 11, ""), ("name", 20, ""), ("value", 20, "")]),
    (106, "profiler.WallClockSample", &[("stackTrace", 26, "constant"), ("samples", 10, "")]),
];

/// The metadata of the classes, with this number of empty texts behind those of the classes.
fn put_metadata(out: &mut Vec<u8>, texts_unused: u64) {
    let mut texts: Vec<String> = Vec::new();
    let mut number = |text: &str| {
        let known = texts.iter().position(|known| known == text);
        known.unwrap_or_else(|| {
            texts.push(text.to_owned());
            texts.len() - 1
        }) as u64
    };
    let mut element = |out: &mut Vec<u8>, name: &str, attributes: &[(&str, &str)], children: usize| {
        put(out, number(name));
        put(out, attributes.len() as u64);
        for (key, value) in attributes {
            put(out, number(key));
            put(out, number(value));
        }
        put(out, children as u64);
    };
    let mut tree = Vec::new();
    element(&mut tree, "root", &[], 2);
    element(&mut tree, "metadata", &[], CLASSES.len());
    for (id, name, fields) in CLASSES {
        element(&mut tree, "class", &[("id", &id.to_string()), ("name", name)], fields.len());
        for (name, class, how) in *fields {
            let extra = match *how {
                "constant" => Some(("constantPool", "true")),
                "list" => Some(("dimension", "1")),
                _ => None,
            };
            let class = class.to_string();
            let attributes: Vec<(&str, &str)> = [("name", *name), ("class", &class)].into_iter().chain(extra).collect();
            element(&mut tree, "field", &attributes, 0);
        }
    }
    element(&mut tree, "region", &[("locale", "en_US")], 0);
    put_event(out, 0, |out| {
        [0, 0, 1].iter().for_each(|number| put(out, *number));
        put(out, texts.len() as u64 + texts_unused);
        texts.iter().for_each(|text| put_text(out, text));
        (0..texts_unused).for_each(|_| out.push(1));
        out.extend_from_slice(&tree);
    });
}

fn put_constants(out: &mut Vec<u8>) {
    put_event(out, 1, |out| {
        [0, 0, 0, 0].iter().for_each(|number| put(out, *number));
        put(out, 5);
        // Stack 1 is `Cart.add` below `Main.main`; the methods come later.
        out.extend([26, 1, 1, 0, 2, 2, 12, 1, 40]);
        out.extend([28, 2, 1, 1, 3, 2, 2, 4]);
        out.extend([21, 2, 1, 1, 2, 2]);
        put(out, 30);
        put(out, 4);
        for (number, text) in (1..).zip(["shop/Main", "shop/Cart", "main", "add"]) {
            put(out, number);
            put_text(out, text);
        }
        out.extend([22, 1, 5]);
        put_text(out, "worker");
        put(out, 4_711);
    });
}

fn chunk(events: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    chunk_with_texts(0, events)
}

fn chunk_with_texts(texts_unused: u64, events: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    events(&mut out);
    put_constants(&mut out);
    let metadata = out.len() as u64;
    put_metadata(&mut out, texts_unused);
    let size = out.len() as u64;
    out[..8].copy_from_slice(b"FLR\0\0\x02\0\0");
    for (place, word) in [(8, size), (24, metadata), (32, 1_700_000_000_000_000_000), (40, 10_000_000_000), (56, 1_000_000)] {
        out[place..place + 8].copy_from_slice(&word.to_be_bytes());
    }
    out[67] = 1;
    out
}

fn put_setting(out: &mut Vec<u8>, id: u64, name: &str, value: &str) {
    put_event(out, 105, |out| {
        put(out, id);
        put_text(out, name);
        put_text(out, value);
    });
}

fn recording() -> Vec<u8> {
    chunk(|out| {
        put_event(out, 101, |out| [9, 5, 1, 0xab, 3].iter().for_each(|number| put(out, *number)));
        put_event(out, 101, |out| [9, 5, 1, 0xab, 3].iter().for_each(|number| put(out, *number)));
        put_event(out, 101, |out| [9, 5, 1, 0, 0].iter().for_each(|number| put(out, *number)));
        put_event(out, 102, |out| [1, 24, 1_000].iter().for_each(|number| put(out, *number)));
        put_event(out, 104, |out| [2_000, 1].iter().for_each(|number| put(out, *number)));
        put_event(out, 106, |out| [1, 3].iter().for_each(|number| put(out, *number)));
        put_setting(out, 101, "interval", "5000000");
        put_setting(out, 101, "wall", "100000000");
    })
}

/// Each sample as `root;leaf thread span values`.
fn samples(profile: &Profile) -> Vec<String> {
    let of = |sample: &ProfileSample| {
        let locations = profile.stacks[sample.stack as usize].locations.iter().rev();
        let frames = locations.map(|id| &profile.locations[id.0 as usize].frames[0]);
        let names: Vec<String> = frames.map(|frame| format!("{}:{}", frame.function, frame.line)).collect();
        let spans: Vec<String> = sample.span.span_ids.iter().map(ToString::to_string).collect();
        format!("{} {} [{}] {:?}", names.join(";"), sample.tid, spans.join(" "), sample.values)
    };
    profile.samples.iter().map(of).collect()
}

#[test]
fn a_recording_is_added_up_by_stack_thread_and_span() {
    let profile = decode(&recording(), b"", u64::MAX).unwrap();
    let types: Vec<String> = profile.types.iter().map(ToString::to_string).collect();
    let expected = [
        "cpu/nanoseconds",
        "alloc_in_new_tlab_objects/count",
        "alloc_in_new_tlab_bytes/bytes",
        "mutex_count/count",
        "mutex_duration/nanoseconds",
        "wall/nanoseconds",
    ];
    assert_eq!(types, expected);
    let stack = "shop.Main.main:40;shop.Cart.add:12";
    let expected = [
        format!("{stack} 4711 [00000000000000ab] [10000000, 0, 0, 0, 0, 0]"),
        format!("{stack} 4711 [] [5000000, 0, 0, 0, 0, 0]"),
        format!("{stack} 0 [] [0, 1, 1000, 0, 0, 0]"),
        format!("{stack} 0 [] [0, 0, 0, 1, 2000000, 0]"),
        format!("{stack} 0 [] [0, 0, 0, 0, 0, 300000000]"),
    ];
    assert_eq!(samples(&profile), expected);
    assert_eq!((profile.start.unwrap().unix_nanos(), profile.duration_nanos), (1_700_000_000_000_000_000, 10_000_000_000));
    assert_eq!(profile.period.unwrap().1, 5_000_000);
}

/// A `LabelsSnapshot` of contexts with their labels, by `agent/jfr_labels.proto`.
pub(super) fn snapshot(contexts: &[(u64, &[(&str, &str)])]) -> Vec<u8> {
    let (mut out, mut texts): (Vec<u8>, Vec<&str>) = (Vec::new(), vec![""]);
    for (number, labels) in contexts {
        put_message(&mut out, 1, |out| {
            put_integer(out, 1, *number);
            put_message(out, 2, |out| {
                for (name, value) in *labels {
                    put_message(out, 1, |out| {
                        put_integer(out, 1, texts.len() as u64);
                        put_integer(out, 2, texts.len() as u64 + 1);
                    });
                    texts.extend([name, value]);
                }
            });
        });
    }
    for (number, text) in (0..).zip(texts) {
        put_message(&mut out, 2, |out| {
            put_integer(out, 1, number);
            put_bytes(out, 2, text.as_bytes());
        });
    }
    out
}

#[test]
fn labels_beside_a_recording_are_those_of_its_contexts() {
    let labels = snapshot(&[(3, &[("endpoint", "/cart"), ("span_name", "GET /cart")]), (4, &[("endpoint", "/pay")])]);
    let profile = decode(&recording(), &labels, u64::MAX).unwrap();
    let of = |sample: &ProfileSample| {
        let labels: Vec<String> = profile.labels(sample).iter().map(|(name, value)| format!("{name}={value}")).collect();
        (labels.join(" "), sample.span.name.clone())
    };
    assert_eq!(of(&profile.samples[0]), ("endpoint=/cart".to_owned(), Some("GET /cart".to_owned())));
    assert_eq!(of(&profile.samples[1]), (String::new(), None));
    let refused = decode(&recording(), &labels[..labels.len() - 1], u64::MAX).unwrap_err().to_string();
    assert!(refused.contains("LabelsSnapshot"), "{refused}");
}

#[test]
fn chunks_are_added_up_together() {
    let one = recording();
    let two = decode(&one.repeat(2), b"", u64::MAX).unwrap();
    assert_eq!((two.samples.len(), two.locations.len()), (5, 2));
    assert_eq!(two.samples[0].values[0], 20_000_000);
}

#[test]
fn the_event_of_async_profiler_decides_what_its_samples_are() {
    let wall = chunk(|out| {
        put_setting(out, 1, "event", "wall");
        put_event(out, 101, |out| [9, 5, 1, 0, 0].iter().for_each(|number| put(out, *number)));
    });
    assert_eq!(decode(&wall, b"", u64::MAX).unwrap().types[0].to_string(), "wall/nanoseconds");
    let of_jdk = chunk(|out| {
        put_setting(out, 101, "period", "20 ms");
        put_setting(out, 102, "period", "7 ms");
        put_event(out, 101, |out| [9, 5, 1, 0, 0].iter().for_each(|number| put(out, *number)));
    });
    assert_eq!(decode(&of_jdk, b"", u64::MAX).unwrap().samples[0].values, [20_000_000]);
}

/// Ten thousand stacks, and no event that refers to one.
fn constants_of_nothing() -> Vec<u8> {
    chunk(|out| {
        put_event(out, 1, |out| {
            [0, 0, 0, 0, 1, 26, 10_000].iter().for_each(|number| put(out, *number));
            for number in 0..10_000 {
                put(out, number);
                // Not cut off, without frames.
                out.extend([0, 0]);
            }
        });
    })
}

#[test]
fn a_broken_recording_says_where() {
    let said = |bytes: &[u8]| decode(bytes, b"", u64::MAX).unwrap_err().to_string();
    let whole = recording();
    assert_eq!(said(b"PK\x03\x04"), "a chunk that is cut off, at byte 0 of the JFR file");
    assert_eq!(said(&[0; 100]), "bytes that do not begin a chunk, at byte 0 of the JFR file");
    assert_eq!(said(&[&whole[..], &whole[..100]].concat()), format!("a chunk that is cut off, at byte {} of the JFR file", whole.len()));
    let changed = |place: usize, value: u8| {
        let mut bytes = whole.clone();
        bytes[place] = value;
        said(&bytes)
    };
    assert!(changed(5, 3).starts_with("a version of the format"));
    assert!(changed(67, 0).starts_with("a version of the format"));
    assert!(changed(24, 1).starts_with("metadata outside of its chunk"));
    let mut growing = whole.clone();
    growing[8..16].fill(0);
    assert!(said(&growing).starts_with("a chunk that is still being written"));
    assert_eq!(said(b""), "a recording without samples of code, allocations or locks, at byte 0 of the JFR file");
    assert!(decode(&whole, b"", 1_000).unwrap_err().to_string().contains("memory"));
    assert!(decode(&constants_of_nothing(), b"", 1 << 19).unwrap_err().to_string().contains("memory"));
    let texts = chunk_with_texts(10_000, |_| ());
    assert!(decode(&texts, b"", 1 << 20).unwrap_err().to_string().contains("memory"));
    assert!(said(&texts).starts_with("a recording without samples"));
    assert_eq!(said(&constants_of_nothing()), "a recording without samples of code, allocations or locks, at byte 0 of the JFR file");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn a_changed_recording_is_read_or_refused(changes in prop::collection::vec((68usize..1_000, any::<u8>()), 1..4)) {
        let mut bytes = recording();
        for (place, value) in changes {
            let length = bytes.len();
            bytes[68 + place % (length - 68)] = value;
        }
        if let Ok(profile) = decode(&bytes, b"", 64 << 20) {
            prop_assert!(profile.samples.iter().all(|sample| sample.values.len() == profile.types.len()));
        }
    }
}

/// OpenJDK 17, see its README.
const JDK: &[u8] = include_bytes!("../../../../../fixtures/jfr/jdk-17.jfr");

#[test]
fn a_recording_of_the_jdk() {
    let profile = decode(JDK, b"", u64::MAX).unwrap();
    let sum = |place: usize| profile.samples.iter().map(|sample| sample.values[place]).sum::<i64>();
    let sums: Vec<String> = profile.types.iter().enumerate().map(|(place, kind)| format!("{kind} {}", sum(place))).collect();
    let expected = [
        "alloc_in_new_tlab_objects/count 803",
        "alloc_in_new_tlab_bytes/bytes 413649568",
        // 36 samples each 10 ms.
        "cpu/nanoseconds 360000000",
        "alloc_objects/count 90",
        "alloc_space/bytes 289787256",
        "alloc_outside_tlab_objects/count 257",
        "alloc_outside_tlab_bytes/bytes 2109456",
        "mutex_count/count 1",
        "mutex_duration/nanoseconds 188145402",
    ];
    assert_eq!(sums, expected);
    let leaf = |sample: &ProfileSample| {
        let leaf = profile.stacks[sample.stack as usize].locations.first();
        leaf.is_some_and(|leaf| profile.locations[leaf.0 as usize].frames[0].function.as_str() == "Shop.hash")
    };
    let of_hash: i64 = profile.samples.iter().filter(|sample| leaf(sample)).map(|sample| sample.values[2]).sum();
    assert_eq!(of_hash, 340_000_000);
}
