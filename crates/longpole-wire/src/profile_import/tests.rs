use longpole_model::SpanId;

use super::*;
use crate::limits::{
    LABEL_NAME_BYTES_MAX, LABEL_VALUE_BYTES_MAX, LABELS_MAX, LOCATION_FRAMES_MAX, NAME_BYTES_MAX, PROFILE_LABEL_SETS_MAX,
    TYPE_NAME_BYTES_MAX,
};
use crate::protobuf::{put_fixed64, put_integer, put_message, put_set_bytes};

fn folded(text: &str) -> Result<Profile, FileError> {
    decode(text.as_bytes(), ProfileFormat::Folded, u64::MAX)
}

/// Each sample as `root;leaf value`.
fn stacks(profile: &Profile) -> Vec<String> {
    let name = |id: &LocationId| {
        let frames = &profile.locations[id.0 as usize].frames;
        frames.iter().rev().map(|frame| frame.function.clone()).collect::<Vec<_>>().join(";")
    };
    let of = |sample: &ProfileSample| {
        let names: Vec<String> = profile.stacks[sample.stack as usize].locations.iter().rev().map(name).collect();
        format!("{} {}", names.join(";"), sample.values[0])
    };
    profile.samples.iter().map(of).collect()
}

#[test]
fn folded_stacks_are_lines_with_a_number_at_their_end() {
    let profile = folded("# made by hand\n\nmain;work;hash block 12\r\n main;work 3\nmain;work;hash block 1").unwrap();
    assert_eq!(stacks(&profile), ["main;work;hash block 12", "main;work 3", "main;work;hash block 1"]);
    assert_eq!((profile.locations.len(), profile.stacks.len(), profile.types[0].to_string()), (3, 2, "samples/count".to_owned()));
    // A number that is no whole one makes all of them millionths.
    let profile = folded("a 0.5\nb 2\n").unwrap();
    assert_eq!((stacks(&profile), &profile.types[0].unit[..]), (vec!["a 500000".to_owned(), "b 2000000".to_owned()], "millionths"));
    // In millionths, whole numbers of nine trillion are too large; none is made smaller in silence.
    assert!(folded("a 9300000000000\nb 2\n").is_ok() && folded("a 9200000000000\nb 1.5\n").is_ok());
    let error = folded("a 9300000000000\nb 1.5\n").unwrap_err();
    assert_eq!(error.to_string(), "a number that is too large to count in millionths, in line 1 at byte 0 of the file");
    assert!(folded("a 1\nb 99999999999999999999\n").is_err());
    let error = folded("a 1\n\nb;c\n").unwrap_err();
    assert_eq!(error.to_string(), "expected a stack and then a number, in line 3 at byte 5 of the file");
    assert!(folded("a -1\n").is_err() && folded(" 12\n").is_err() && folded("a 1e9\n").is_err());
}

#[test]
fn of_a_stack_too_deep_the_innermost_frames_are_kept() {
    let deep = format!("{}leaf 1\nmain;work 2\n", "main;".repeat(STACK_FRAMES_MAX + 5));
    let profile = folded(&deep).unwrap();
    let stack = &profile.stacks[0].locations;
    assert_eq!((stack.len(), profile.stacks_cut), (STACK_FRAMES_MAX, 1));
    assert_eq!(profile.locations[stack[0].0 as usize].frames[0].function, "leaf");
    let mut bytes = Vec::new();
    put_message(&mut bytes, 1, |out| put_integer(out, 1, 1));
    put_message(&mut bytes, 2, |out| {
        put_set_bytes(out, 1, &vec![1; STACK_FRAMES_MAX + 1]);
        put_set_bytes(out, 2, &[3]);
    });
    put_message(&mut bytes, 4, |out| put_integer(out, 1, 1));
    for text in ["", "samples"] {
        put_set_bytes(&mut bytes, 6, text.as_bytes());
    }
    let profile = decode(&bytes[..], ProfileFormat::Pprof, u64::MAX).unwrap();
    assert_eq!((profile.stacks[0].locations.len(), profile.stacks_cut), (STACK_FRAMES_MAX, 1));
}

#[test]
fn a_profile_of_too_many_types_or_too_long_names_is_refused() {
    let type_of_value = |out: &mut Vec<u8>| put_message(out, 1, |out| put_integer(out, 1, 1));
    let mut bytes = Vec::new();
    (0..65).for_each(|_| type_of_value(&mut bytes));
    put_set_bytes(&mut bytes, 6, b"");
    put_set_bytes(&mut bytes, 6, b"x");
    let refused = |bytes: &[u8]| decode(bytes, ProfileFormat::Pprof, u64::MAX).unwrap_err().to_string();
    assert!(refused(&bytes).starts_with("more than 64 types of values"), "{}", refused(&bytes));

    // One name of 4 MiB that a hundred frames have.
    let mut bytes = Vec::new();
    type_of_value(&mut bytes);
    put_set_bytes(&mut bytes, 6, b"");
    put_set_bytes(&mut bytes, 6, &vec![b'x'; 4 << 20]);
    put_message(&mut bytes, 5, |out| {
        put_integer(out, 1, 1);
        put_integer(out, 2, 1);
    });
    for number in 1..=100 {
        put_message(&mut bytes, 4, |out| {
            put_integer(out, 1, number);
            put_message(out, 4, |out| put_integer(out, 1, 1));
        });
    }
    assert!(refused(&bytes).starts_with("more than 268435456 bytes of names in all frames"), "{}", refused(&bytes));
}

#[test]
fn a_profile_is_known_by_its_first_bytes() {
    assert_eq!(guess(b"main;work 12\nmain 1\nmai"), Some(ProfileFormat::Folded));
    assert_eq!(guess(GO), Some(ProfileFormat::Pprof));
    assert_eq!(guess(&GO[..GO.len() / 2]), Some(ProfileFormat::Pprof));
    for other in [&b"hello\n"[..], b"", b"{\"a\": 1}", b"<html>", b"\x0a\x04\x0a\x02ab", b"two words\nmain 1\n"] {
        assert_eq!(guess(other), None, "{}", String::from_utf8_lossy(other));
    }
    assert_eq!(guess(include_bytes!("../../../../fixtures/otlp/python.pb")), None);
}

/// `runtime/pprof` of Go 1.26, unpacked.
const GO: &[u8] = include_bytes!("../../../../fixtures/pprof/go-cpu.pb");

#[test]
fn a_profile_of_go_has_its_times_and_its_labels() {
    let profile = decode(GO, ProfileFormat::Pprof, u64::MAX).unwrap();
    let types: Vec<String> = profile.types.iter().map(ValueType::to_string).collect();
    assert_eq!(types, ["samples/count", "cpu/nanoseconds"]);
    assert_eq!(profile.period, Some((ValueType { name: "cpu".to_owned(), unit: "nanoseconds".to_owned() }, 10_000_000)));
    assert!(profile.start.is_some() && profile.duration_nanos > 0);
    assert!(profile.samples.iter().all(|sample| sample.values[1] == sample.values[0] * 10_000_000));
    let spans: Vec<String> = profile.samples.iter().flat_map(|sample| &sample.span.span_ids).map(SpanId::to_string).collect();
    assert!(!spans.is_empty() && spans.iter().all(|span| span == "00f067aa0ba902b7"), "{spans:?}");
}

#[test]
fn labels_name_spans_in_the_ways_of_other_profilers() {
    let label = |labels: &[(&str, &str)]| {
        let mut bytes = Vec::new();
        put_message(&mut bytes, 1, |_| ());
        put_set_bytes(&mut bytes, 6, b"");
        for (key, text) in labels {
            put_set_bytes(&mut bytes, 6, key.as_bytes());
            put_set_bytes(&mut bytes, 6, text.as_bytes());
        }
        put_message(&mut bytes, 2, |out| {
            put_set_bytes(out, 2, &[5]);
            for place in 0..labels.len() as u64 {
                put_message(out, 3, |out| {
                    put_integer(out, 1, 1 + 2 * place);
                    put_integer(out, 2, 2 + 2 * place);
                });
            }
        });
        decode(&bytes[..], ProfileFormat::Pprof, u64::MAX).unwrap().samples.remove(0).span
    };
    let ids = |label: &SpanLabel| label.span_ids.iter().map(SpanId::to_string).collect::<Vec<_>>();
    let pyroscope = label(&[("profile_id", "00f067aa0ba902b7"), ("span_name", "GET /")]);
    assert_eq!(
        (ids(&pyroscope), pyroscope.name.as_deref(), pyroscope.trace_id),
        (vec!["00f067aa0ba902b7".to_owned()], Some("GET /"), None)
    );
    let datadog = label(&[("local root span id", "255"), ("span id", "256"), ("trace endpoint", "GET /users")]);
    assert_eq!((ids(&datadog), datadog.name.as_deref()), (vec!["0000000000000100".to_owned()], Some("GET /users")));
    assert_eq!(ids(&label(&[("local root span id", "255")])), ["00000000000000ff"]);
    // What can be read in two ways is.
    assert_eq!(ids(&label(&[("span id", "1000000000000000")])), ["1000000000000000", "00038d7ea4c68000"]);
    assert_eq!(label(&[("span_id", "none"), ("trace_id", "x"), ("span_name", "")]), SpanLabel::default());
}

/// The labels of each sample: `a=1 b=2`.
fn labels(profile: &Profile) -> Vec<String> {
    let of = |sample: &ProfileSample| profile.labels(sample).iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    profile.samples.iter().map(|sample| of(sample).join(" ")).collect()
}

#[test]
fn labels_that_name_no_span_process_or_thread_are_sets() {
    let profile =
        hostile(&[b"endpoint", b"/cart", b"span_id", b"00f067aa0ba902b7", b"tenant", b"a", b"bytes", b"/pay", b"endpoint"], |out| {
            let mut sample = |labels: &[(u64, u64)]| {
                put_message(out, 2, |out| {
                    put_set_bytes(out, 2, &[10]);
                    labels.iter().for_each(|(key, text)| numbers(out, 3, &[(1, *key), (2, *text)]));
                    // With a number: the size of what was allocated.
                    numbers(out, 3, &[(1, 9), (3, 4_096)]);
                });
            };
            sample(&[(7, 8), (3, 4), (5, 6)]);
            sample(&[(3, 4), (7, 8)]);
            sample(&[]);
            // The last of a name counts, also where the name is another text of the table.
            sample(&[(3, 4), (3, 10)]);
            sample(&[(3, 10), (11, 4)]);
        })
        .unwrap();
    assert_eq!(labels(&profile), ["endpoint=/cart tenant=a", "endpoint=/cart tenant=a", "", "endpoint=/pay", "endpoint=/cart"]);
    let sets: Vec<u32> = profile.samples.iter().map(|sample| sample.labels).collect();
    assert_eq!((sets, profile.label_sets.len(), profile.labels_cut), (vec![1, 1, 0, 2, 3], 4, 0));
    assert_eq!(profile.samples[0].span.span_ids.len(), 1);
}

#[test]
fn a_profile_that_was_built_comes_back_with_its_labels() {
    use crate::profile_export::pprof_builder::{Label, LabelValue, Location, PprofBuilder};
    // Types and names that are known only when the program runs.
    let (kind, unit, key) = ("alloc_space".to_owned(), "bytes".to_owned(), "endpoint".to_owned());
    let mut builder = PprofBuilder::default();
    builder.sample_types = vec![(&kind, &unit)];
    builder.period = (&kind, &unit, 7);
    let function = builder.function("main", "main.go");
    let main = builder.location(Location { lines: vec![(function, 3)], ..Location::default() });
    builder.sample(vec![main], vec![5], vec![Label { key: &key, value: LabelValue::Text("/cart".to_owned()) }]);
    let profile = decode(&builder.encode(), ProfileFormat::Pprof, u64::MAX).unwrap();
    assert_eq!((stacks(&profile), labels(&profile)), (vec!["main 5".to_owned()], vec!["endpoint=/cart".to_owned()]));
    assert_eq!(profile.period_of(0).map(|(kind, each)| (kind.to_string(), *each)), Some(("alloc_space/bytes".to_owned(), 7)));
}

#[test]
fn labels_beyond_the_limits_are_counted() {
    let mut texts: Vec<Vec<u8>> = (0..100).map(|number| format!("label{number:02}").into_bytes()).collect();
    texts.extend([vec![b'n'; LABEL_NAME_BYTES_MAX + 1], vec![b'v'; LABEL_VALUE_BYTES_MAX + 1]]);
    let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
    let profile = hostile(&texts, |out| {
        put_message(out, 2, |out| {
            put_set_bytes(out, 2, &[10]);
            (3..103).for_each(|key| numbers(out, 3, &[(1, key), (2, 3)]));
        });
        put_message(out, 2, |out| {
            put_set_bytes(out, 2, &[10]);
            numbers(out, 3, &[(1, 103), (2, 3)]);
            numbers(out, 3, &[(1, 3), (2, 104)]);
        });
    })
    .unwrap();
    let sizes: Vec<usize> = profile.samples.iter().map(|sample| profile.labels(sample).len()).collect();
    assert_eq!((sizes, profile.labels_cut), (vec![LABELS_MAX, 1], 100 - LABELS_MAX as u64 + 2));
    assert_eq!(profile.labels(&profile.samples[1])[0].1.len(), LABEL_VALUE_BYTES_MAX + "…".len());
    // A name that is no text is none.
    let profile = hostile(&[b"\xff", b"a", b"\xfe"], |out| {
        put_message(out, 2, |out| {
            put_set_bytes(out, 2, &[10]);
            [(3, 3), (5, 3), (4, 3)].iter().for_each(|(key, text)| numbers(out, 3, &[(1, *key), (2, *text)]));
        });
    })
    .unwrap();
    assert_eq!((labels(&profile), profile.labels_cut), (vec!["a=\u{fffd}".to_owned()], 2));

    // Each sample with another set: those behind the limit have none.
    let ids: Vec<Vec<u8>> = (0..=PROFILE_LABEL_SETS_MAX).map(|id| id.to_string().into_bytes()).collect();
    let texts: Vec<&[u8]> = [&b"request"[..]].into_iter().chain(ids.iter().map(|id| &id[..])).collect();
    let profile = hostile(&texts, |out| {
        for id in 0..=u64::from(PROFILE_LABEL_SETS_MAX) {
            put_message(out, 2, |out| {
                put_set_bytes(out, 2, &[10]);
                numbers(out, 3, &[(1, 3), (2, 4 + id)]);
            });
        }
    })
    .unwrap();
    assert_eq!((profile.label_sets.len(), profile.labels_cut), (1 + PROFILE_LABEL_SETS_MAX as usize, 1));
}

#[test]
fn a_profile_that_contradicts_itself_says_where() {
    let said = |bytes: &[u8]| decode(bytes, ProfileFormat::Pprof, u64::MAX).unwrap_err().to_string();
    let mut bytes = Vec::new();
    put_message(&mut bytes, 1, |out| put_integer(out, 1, 7));
    put_set_bytes(&mut bytes, 6, b"");
    assert_eq!(said(&bytes), "no entry 7 in string_table, in the ValueType message at byte 2, in the document at byte 0 of the file");
    let mut bytes = Vec::new();
    put_message(&mut bytes, 1, |_| ());
    put_message(&mut bytes, 2, |out| {
        put_integer(out, 1, 3);
        put_integer(out, 2, 1);
    });
    assert_eq!(said(&bytes), "no entry 3 in location, in the Sample message at byte 4, in the document at byte 0 of the file");
    assert_eq!(said(&bytes[..5]), "bytes end inside a field, in the Profile message at byte 2, in the document at byte 0 of the file");
    let mut bytes = Vec::new();
    put_set_bytes(&mut bytes, 6, b"");
    assert_eq!(said(&bytes), "too few or too many of field 1, in the Profile message at byte 0, in the document at byte 0 of the file");
}

#[test]
fn lines_of_a_location_are_calls_that_were_inlined_innermost_first() {
    let mut bytes = Vec::new();
    put_message(&mut bytes, 1, |_| ());
    for (function, text) in [(1, "inner"), (2, "outer")] {
        put_message(&mut bytes, 5, |out| {
            put_integer(out, 1, function);
            put_integer(out, 2, function);
        });
        if function == 1 {
            put_set_bytes(&mut bytes, 6, b"");
        }
        put_set_bytes(&mut bytes, 6, text.as_bytes());
    }
    put_message(&mut bytes, 4, |out| {
        put_integer(out, 1, 9);
        for (function, line) in [(1, 30), (2, 40)] {
            put_message(out, 4, |out| {
                put_integer(out, 1, function);
                put_integer(out, 2, line);
            });
        }
    });
    // The numbers of a list may be packed.
    put_message(&mut bytes, 2, |out| {
        put_set_bytes(out, 1, &[9, 9]);
        put_set_bytes(out, 2, &[5]);
    });
    let profile = decode(&bytes[..], ProfileFormat::Pprof, u64::MAX).unwrap();
    let lines: Vec<(&str, u32)> = profile.locations[0].frames.iter().map(|frame| (&frame.function[..], frame.line)).collect();
    assert_eq!(
        (lines, profile.stacks[0].locations.len(), &profile.samples[0].values[..]),
        (vec![("inner", 30), ("outer", 40)], 2, &[5][..])
    );
}

/// A profile of OTLP as a host's profiler sends it: two samples on a CPU, one with a span, and one that waited; written by hand, by the
/// `.proto` of opentelemetry-proto 1.10.
fn otlp(texts_begin_with: &[u8]) -> Vec<u8> {
    let texts = ["samples", "count", "cpu", "nanoseconds", "off_cpu", "main", "hash", "main.c", "/usr/bin/app", "thread.id", "thread.name"];
    let mut texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    texts.insert(0, texts_begin_with);
    let text = |wanted: &str| texts.iter().position(|text| *text == wanted.as_bytes()).unwrap() as u64;
    let kind = |out: &mut Vec<u8>, field: u32, name: &str, unit: &str| {
        put_message(out, field, |out| {
            put_integer(out, 1, text(name));
            put_integer(out, 2, text(unit));
        });
    };
    let times =
        |out: &mut Vec<u8>, times: &[u64]| put_set_bytes(out, 5, &times.iter().flat_map(|time| time.to_le_bytes()).collect::<Vec<u8>>());
    let mut out = Vec::new();
    put_message(&mut out, 1, |out| {
        put_message(out, 1, |out| {
            put_message(out, 1, |out| {
                put_set_bytes(out, 1, b"process.pid");
                put_message(out, 2, |out| put_integer(out, 3, 7));
            });
        });
        put_message(out, 2, |out| {
            put_message(out, 2, |out| {
                kind(out, 1, "samples", "count");
                put_message(out, 2, |out| {
                    put_integer(out, 1, 1);
                    put_set_bytes(out, 2, &[1, 2]);
                    put_integer(out, 3, 1);
                    times(out, &[1_700_000_000_010_000_000, 1_700_000_000_000_000_000]);
                });
                kind(out, 5, "cpu", "nanoseconds");
                put_integer(out, 6, 10_000_000);
            });
            put_message(out, 2, |out| {
                kind(out, 1, "off_cpu", "nanoseconds");
                put_message(out, 2, |out| {
                    put_integer(out, 1, 2);
                    put_integer(out, 4, 5_000);
                    times(out, &[1_700_000_000_020_000_000]);
                });
            });
        });
    });
    put_message(&mut out, 2, |out| {
        put_message(out, 1, |_| ());
        put_message(out, 1, |out| {
            put_integer(out, 1, 0x1000);
            put_integer(out, 4, text("/usr/bin/app"));
        });
        put_message(out, 2, |_| ());
        // `hash` inlined into `main`, and code without a name.
        put_message(out, 2, |out| {
            for (function, line) in [(2, 30), (1, 40)] {
                put_message(out, 3, |out| {
                    put_integer(out, 1, function);
                    put_integer(out, 2, line);
                });
            }
        });
        put_message(out, 2, |out| {
            put_integer(out, 1, 1);
            put_integer(out, 2, 0x1234);
        });
        put_message(out, 3, |_| ());
        for name in ["main", "hash"] {
            put_message(out, 3, |out| {
                put_integer(out, 1, text(name));
                put_integer(out, 3, text("main.c"));
            });
        }
        put_message(out, 4, |out| {
            put_set_bytes(out, 1, &[0; 16]);
            put_set_bytes(out, 2, &[0; 8]);
        });
        put_message(out, 4, |out| {
            put_set_bytes(out, 1, &[0xab; 16]);
            put_set_bytes(out, 2, &[0xcd; 8]);
        });
        texts.iter().for_each(|text| put_set_bytes(out, 5, text));
        put_message(out, 6, |_| ());
        put_message(out, 6, |out| {
            put_integer(out, 1, text("thread.id"));
            put_message(out, 2, |out| put_integer(out, 3, 8));
        });
        put_message(out, 6, |out| {
            put_integer(out, 1, text("thread.name"));
            put_message(out, 2, |out| put_integer(out, 8, text("main")));
        });
        put_message(out, 7, |_| ());
        put_message(out, 7, |out| put_set_bytes(out, 1, &[1, 2]));
        put_message(out, 7, |out| put_set_bytes(out, 1, &[2]));
    });
    out
}

#[test]
fn profiles_of_otlp_have_their_moments_and_their_spans() {
    let bytes = otlp(b"");
    assert_eq!(guess(&bytes), Some(ProfileFormat::Otlp));
    assert_eq!(guess(&bytes[..60]), Some(ProfileFormat::Otlp), "cut off in front of its dictionary");
    let framed = [&(bytes.len() as u32).to_be_bytes()[..], &bytes].concat().repeat(2);
    assert_eq!(guess(&framed), Some(ProfileFormat::Otlp));
    let profile = decode(&bytes[..], ProfileFormat::Otlp, u64::MAX).unwrap();
    let types: Vec<String> = profile.types.iter().map(ValueType::to_string).collect();
    assert_eq!(types, ["samples/count", "off_cpu/nanoseconds"]);
    assert_eq!(profile.period, Some((ValueType { name: "cpu".to_owned(), unit: "nanoseconds".to_owned() }, 10_000_000)));
    assert_eq!(stacks(&profile), ["app+0x234;main;hash 1", "app+0x234;main;hash 1", "app+0x234 0"]);
    let lines: Vec<u32> = profile.locations[0].frames.iter().map(|frame| frame.line).collect();
    assert_eq!((lines, &profile.locations[0].frames[0].file[..]), (vec![30, 40], "main.c"));
    let seconds: Vec<i64> = profile.samples.iter().map(|sample| sample.time.unwrap().unix_nanos() % 1_000_000_000 / 1_000_000).collect();
    assert_eq!(seconds, [10, 0, 20]);
    let whose: Vec<(u32, u32, usize)> = profile.samples.iter().map(|it| (it.pid, it.tid, it.span.span_ids.len())).collect();
    assert_eq!(whose, [(7, 8, 1), (7, 8, 1), (7, 0, 0)]);
    assert_eq!(profile.samples[0].span.trace_id.unwrap().to_string(), "ab".repeat(16));
    assert_eq!(profile.samples[2].values, [0, 5_000]);
    assert_eq!(profile.names.into_iter().collect::<Vec<_>>(), [((7, 8), "main".to_owned())]);
    assert_eq!(decode(&framed[..], ProfileFormat::Otlp, u64::MAX).unwrap().samples.len(), 6);
}

#[test]
fn texts_of_the_resource_the_profile_and_the_sample_are_labels() {
    let mut out = Vec::new();
    let text = |out: &mut Vec<u8>, key: &[u8], value: &[u8]| {
        put_message(out, 1, |out| {
            put_set_bytes(out, 1, key);
            put_message(out, 2, |out| put_set_bytes(out, 1, value));
        });
    };
    put_message(&mut out, 1, |out| {
        put_message(out, 1, |out| {
            text(out, b"service.name", b"cart");
            text(out, b"env", b"of the resource");
            put_message(out, 1, |out| {
                put_set_bytes(out, 1, b"process.pid");
                put_message(out, 2, |out| put_integer(out, 3, 7));
            });
        });
        put_message(out, 2, |out| {
            for (began, of_profile) in [(0, &[1][..]), (7, &[])] {
                put_message(out, 2, |out| {
                    numbers(out, 1, &[(1, 1), (2, 2)]);
                    put_fixed64(out, 3, began);
                    put_set_bytes(out, 11, of_profile);
                    for of_sample in [&[2, 3][..], &[], &[2]] {
                        put_message(out, 2, |out| {
                            put_set_bytes(out, 2, of_sample);
                            put_integer(out, 4, 10);
                        });
                    }
                });
            }
        });
    });
    put_message(&mut out, 2, |out| {
        let texts = ["", "cpu", "nanoseconds", "env", "prod", "endpoint", "/pay", "thread.name", "main"];
        texts.iter().for_each(|text| put_set_bytes(out, 5, text.as_bytes()));
        put_message(out, 6, |_| ());
        for key in [3, 5, 7] {
            put_message(out, 6, |out| {
                put_integer(out, 1, key);
                numbers(out, 2, &[(8, key + 1)]);
            });
        }
    });
    let profile = decode(&out[..], ProfileFormat::Otlp, u64::MAX).unwrap();
    let expected = [
        "endpoint=/pay env=prod service.name=cart",
        "env=prod service.name=cart",
        "endpoint=/pay env=prod service.name=cart",
        "endpoint=/pay env=of the resource service.name=cart",
        "env=of the resource service.name=cart",
        "endpoint=/pay env=of the resource service.name=cart",
    ];
    assert_eq!(labels(&profile), expected);
    assert_eq!((profile.label_sets.len(), profile.labels_cut), (5, 0));
    // Each sample knows when its own profile began.
    let began: Vec<Option<i64>> = profile.samples.iter().map(|sample| sample.began.map(Timestamp::unix_nanos)).collect();
    assert_eq!(began, [None, None, None, Some(7), Some(7), Some(7)]);
}

#[test]
fn spans_and_profiles_of_otlp_are_distinguished_and_another_version_is_named() {
    assert_ne!(guess(include_bytes!("../../../../fixtures/otlp/python.pb")), Some(ProfileFormat::Otlp));
    let said = |bytes: &[u8]| decode(bytes, ProfileFormat::Otlp, u64::MAX).unwrap_err().to_string();
    assert!(
        said(&otlp(b"x")).starts_with("string_table does not begin with an empty entry, as in opentelemetry-proto 1.10"),
        "{}",
        said(&otlp(b"x"))
    );
    // As opentelemetry-proto 1.3 had it: places of locations are packed where a time is now.
    let mut older = Vec::new();
    put_message(&mut older, 1, |out| {
        put_message(out, 2, |out| {
            put_message(out, 2, |out| {
                put_message(out, 1, |_| ());
                put_set_bytes(out, 3, &[1, 2]);
            })
        })
    });
    assert_eq!(guess(&older), Some(ProfileFormat::Otlp));
    assert!(said(&older).starts_with("field 3 is of another type than in opentelemetry-proto 1.10"), "{}", said(&older));
    let mut without = otlp(b"");
    without.truncate(without.len() - 1);
    assert!(said(&without).contains("bytes end inside a field"), "{}", said(&without));
    assert!(said(b"").contains("too few or too many of field 1"));
}

/// A profile of pprof of nanoseconds on a CPU, with these texts behind the three of its type, which have the numbers from 3 on.
fn hostile(texts: &[&[u8]], rest: impl FnOnce(&mut Vec<u8>)) -> Result<Profile, FileError> {
    let mut bytes = Vec::new();
    [&b""[..], b"cpu", b"nanoseconds"].iter().chain(texts).for_each(|text| put_set_bytes(&mut bytes, 6, text));
    put_message(&mut bytes, 1, |out| {
        put_integer(out, 1, 1);
        put_integer(out, 2, 2);
    });
    rest(&mut bytes);
    decode(&bytes[..], ProfileFormat::Pprof, u64::MAX)
}

fn numbers(out: &mut Vec<u8>, field: u32, numbers: &[(u32, u64)]) {
    put_message(out, field, |out| numbers.iter().for_each(|(field, number)| put_integer(out, *field, *number)));
}

/// A location of a number of lines, all of function 1.
fn lines(out: &mut Vec<u8>, id: u64, lines: u64) {
    put_message(out, 4, |out| {
        put_integer(out, 1, id);
        (1..=lines).for_each(|line| numbers(out, 4, &[(1, 1), (2, line)]));
    });
}

fn sample(out: &mut Vec<u8>, locations: &[u8]) {
    put_message(out, 2, |out| {
        put_set_bytes(out, 1, locations);
        put_set_bytes(out, 2, &[10]);
    });
}

#[test]
fn frames_of_a_stack_are_counted_and_not_its_locations() {
    let profile = hostile(&[b"main"], |out| {
        numbers(out, 5, &[(1, 1), (2, 3)]);
        lines(out, 1, 20_000);
        lines(out, 2, 100);
        sample(out, &[1; STACK_FRAMES_MAX]);
        sample(out, &[2; STACK_FRAMES_MAX]);
        sample(out, &[2, 2]);
    })
    .unwrap();
    let frames: Vec<usize> = profile.locations.iter().map(|location| location.frames.len()).collect();
    assert_eq!(frames, [LOCATION_FRAMES_MAX, 100]);
    // Behind frames that are missing nothing is shown: the first stack ends with its first location.
    let kept: Vec<usize> = profile.stacks.iter().map(|stack| stack.locations.len()).collect();
    assert_eq!((&kept[..], profile.stacks_cut), (&[1, STACK_FRAMES_MAX / 100, 2][..], 2));
}

#[test]
fn what_many_stacks_share_that_was_inlined_is_limited() {
    let refused = hostile(&[b"main"], |out| {
        numbers(out, 5, &[(1, 1), (2, 3)]);
        lines(out, 1, LOCATION_FRAMES_MAX as u64);
        (2..4).for_each(|id| lines(out, id, 1));
        // 9,000 stacks of 15 such locations and of two others, each in another order.
        for number in 0..9_000u32 {
            let order: Vec<u8> = (0..14).map(|bit| 2 + (number >> bit & 1) as u8).collect();
            sample(out, &[&[1; 15][..], &order].concat());
        }
    });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.starts_with("more than 33554432 inlined calls in all stacks"), "{refused}");
}

#[test]
fn long_names_are_cut_and_counted() {
    let long = "ä".repeat(NAME_BYTES_MAX);
    let profile = hostile(&[long.as_bytes(), &b"ab".repeat(1 << 20), b"a0b1"], |out| {
        numbers(out, 5, &[(1, 1), (2, 3), (4, 3)]);
        numbers(out, 1, &[(1, 3), (2, 3)]);
        numbers(out, 11, &[(1, 3), (2, 2)]);
        // A build id of a megabyte is none.
        numbers(out, 3, &[(1, 1), (5, 3), (6, 4)]);
        numbers(out, 3, &[(1, 2), (5, 3), (6, 5)]);
        lines(out, 1, 1);
    })
    .unwrap();
    let frame = &profile.locations[0].frames[0];
    let cut = format!("{}…", "ä".repeat(NAME_BYTES_MAX / 2));
    assert_eq!((frame.function.as_str(), frame.file.as_str()), (cut.as_str(), cut.as_str()));
    assert_eq!(profile.types[1].name, format!("{}…", "ä".repeat(TYPE_NAME_BYTES_MAX / 2)));
    let build_ids: Vec<&[u8]> = profile.mappings.iter().map(|mapping| &mapping.build_id[..]).collect();
    assert_eq!(build_ids, [&[][..], &[0xa0, 0xb1]]);
    // In the middle of a character, and of what is none.
    assert_eq!((parts::cut("xä".as_bytes(), 2), parts::cut(&[0x80; 9], 4)), ("x…".to_owned(), format!("{}…", "\u{fffd}".repeat(4))));

    let types = hostile(&[&vec![b'x'; 5 << 20]], |out| (0..60).for_each(|_| numbers(out, 1, &[(1, 3), (2, 3)])));
    assert!(types.unwrap_err().to_string().contains("bytes of names"));
    let unnamed = hostile(&[&vec![b'x'; 4 << 20]], |out| {
        numbers(out, 3, &[(1, 1), (5, 3)]);
        (1..200_000).for_each(|id| numbers(out, 4, &[(1, id), (2, 1), (3, id)]));
    });
    assert!(unnamed.unwrap_err().to_string().contains("bytes of names"));
}

#[test]
fn labels_are_read_without_a_copy_of_each() {
    // Half a terabyte, where each label copies its key and its text.
    let label = |out: &mut Vec<u8>, key: u64, text: u64| numbers(out, 3, &[(1, key), (2, text)]);
    let profile = hostile(&[&vec![b'x'; 4 << 20], b"span_name", b"pid", b"7"], |out| {
        put_message(out, 2, |out| {
            put_set_bytes(out, 2, &[10]);
            (0..50_000).for_each(|_| label(out, 3, 3));
            (0..50_000).for_each(|_| label(out, 4, 3));
            (0..50_000).for_each(|_| label(out, 5, 3));
            label(out, 5, 6);
        });
    })
    .unwrap();
    let sample = &profile.samples[0];
    assert_eq!((sample.pid, sample.span.name.as_ref().unwrap().len()), (7, NAME_BYTES_MAX + "…".len()));
}

#[test]
fn a_name_that_all_threads_have_is_counted_for_each() {
    // Thread ids from 100 on, all with one name.
    let file = |name: &[u8], threads: u64| {
        let mut out = Vec::new();
        put_message(&mut out, 2, |out| {
            put_message(out, 1, |_| ());
            put_message(out, 2, |_| ());
            put_message(out, 4, |_| ());
            let texts = [&b""[..], b"cpu", b"nanoseconds", b"process.pid", b"thread.id", b"thread.name", name];
            texts.iter().for_each(|text| put_set_bytes(out, 5, text));
            let attribute = |out: &mut Vec<u8>, key: u64, field: u32, value: u64| {
                put_message(out, 6, |out| {
                    put_integer(out, 1, key);
                    numbers(out, 2, &[(field, value)]);
                });
            };
            put_message(out, 6, |_| ());
            attribute(out, 3, 3, 7);
            attribute(out, 5, 8, 6);
            (0..threads).for_each(|thread| attribute(out, 4, 3, 100 + thread));
            put_message(out, 7, |_| ());
        });
        put_message(&mut out, 1, |out| {
            put_message(out, 2, |out| {
                put_message(out, 2, |out| {
                    numbers(out, 1, &[(1, 1), (2, 2)]);
                    for thread in 0..threads {
                        put_message(out, 2, |out| {
                            [1, 2, 3 + thread].iter().for_each(|attribute| put_integer(out, 2, *attribute));
                            put_integer(out, 4, 10);
                        });
                    }
                });
            });
        });
        decode(&out[..], ProfileFormat::Otlp, u64::MAX)
    };
    let profile = file(&vec![b'x'; 1 << 20], 100).unwrap();
    assert_eq!(profile.names.len(), 100);
    assert!(profile.names.values().all(|name| name.len() == NAME_BYTES_MAX + "…".len()));
    let refused = file(&vec![b'x'; 1 << 20], 300).unwrap_err().to_string();
    assert!(refused.starts_with("more than 268435456 bytes of names in all frames"), "{refused}");
}

#[test]
fn a_profile_takes_no_more_memory_than_it_may() {
    let folded: String = (0..1_000).map(|number| format!("main;f{number} 1\n")).collect();
    for (bytes, format) in [(GO, ProfileFormat::Pprof), (folded.as_bytes(), ProfileFormat::Folded)] {
        decode(bytes, format, 4 << 20).unwrap();
        let refused = decode(bytes, format, 2_000).unwrap_err().to_string();
        assert!(refused.contains("memory"), "{refused}");
    }
}

#[test]
fn a_pprof_without_mappings_is_no_profile_of_otlp() {
    // `sample_type`, two samples of packed locations and values, a location, its function, four texts.
    let pprof = b"\x0a\x04\x08\x01\x10\x02\x12\x06\x0a\x01\x01\x12\x01\x05\x12\x06\x0a\x01\x01\x12\x01\x07\
        \x22\x08\x08\x01\x22\x04\x08\x01\x10\x09\x2a\x04\x08\x01\x10\x03\x32\x00\x32\x03cpu\x32\x02ns\x32\x04main";
    assert_eq!(guess(pprof), Some(ProfileFormat::Pprof));
    // The same with one sample.
    assert_eq!(guess(&[&pprof[..14], &pprof[22..]].concat()), Some(ProfileFormat::Pprof));
}
