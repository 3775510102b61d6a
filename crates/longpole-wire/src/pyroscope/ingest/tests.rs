use proptest::prelude::*;

use super::*;
use crate::limits::STACK_FRAMES_MAX;

fn pairs(text: &str) -> Vec<(String, String)> {
    text.split_whitespace().filter_map(|pair| pair.split_once('=')).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn the_address_of_a_request() {
    let pairs = [
        ("name", "shop.cart.cpu{env=prod, region=eu}"),
        ("from", "1700000000"),
        ("until", "1700000010000"),
        ("format", "groups"),
        ("sampleRate", "50"),
        ("spyName", "rbspy"),
        ("units", "samples"),
        ("aggregationType", "sum"),
        ("other", "x"),
    ];
    let read = IngestParameters::parse(pairs, None).unwrap();
    let expected = IngestParameters {
        app: "shop.cart.cpu".to_owned(),
        labels: self::pairs("env=prod region=eu"),
        from: Some(Timestamp(1_700_000_000_000_000_000)),
        until: Some(Timestamp(1_700_000_010_000_000_000)),
        format: IngestFormat::Folded,
        sample_rate: 50,
        units: Some("samples".to_owned()),
        aggregation: Some("sum".to_owned()),
        spy: Some("rbspy".to_owned()),
    };
    assert_eq!(read, expected);
    assert_eq!((read.service(), read.units().suffix, read.units().is_average), ("shop.cart", Some("cpu"), false));
    let said = |pairs: &[(&'static str, &'static str)]| IngestParameters::parse(pairs.iter().copied(), None).unwrap_err().to_string();
    assert_eq!(said(&[]), "the parameter name is missing, at byte 0 of the address \"\"");
    let said_format = said(&[("name", "x"), ("format", "xml")]);
    assert_eq!(
        said_format,
        "expected pprof, folded, groups, lines, trie, tree, speedscope or jfr, at byte 0 of the parameter format \"xml\""
    );
    assert!(said(&[("name", "x"), ("from", "now")]).starts_with("expected a number of seconds"));
    assert!(said(&[("name", "x"), ("sampleRate", "-1")]).starts_with("expected a number of samples a second"));
}

#[test]
fn the_name_of_an_application_carries_labels() {
    assert_eq!(app_name("cart").unwrap(), ("cart".to_owned(), vec![]));
    assert_eq!(app_name("cart{}").unwrap(), ("cart".to_owned(), vec![]));
    assert_eq!(app_name(" cart {a=1,a = 2 ,b=,} ").unwrap(), ("cart".to_owned(), pairs("a=2 b=")));
    assert_eq!(app_name("cart{url=http://x/{id}?a=b}").unwrap().1, pairs("url=http://x/{id}?a=b"));
    let said = |text: &str| app_name(text).unwrap_err().to_string();
    assert_eq!(said("cart{env=prod"), "expected }, at byte 13 of the name of an application \"cart{env=prod\"");
    assert_eq!(said("cart{a=1,env}"), "expected a label, as in env=prod, at byte 9 of the name of an application \"cart{a=1,env}\"");
    assert_eq!(said("{env=prod}"), "expected a name, at byte 0 of the name of an application \"{env=prod}\"");
    assert_eq!(said("cart{=1}"), "expected the name of a label, at byte 5 of the name of an application \"cart{=1}\"");
    let many: Vec<String> = (0..=LABELS_MAX).map(|number| format!("l{number}=1")).collect();
    assert!(said(&format!("cart{{{}}}", many.join(","))).starts_with("expected 64 labels at most"));
}

#[test]
fn the_content_type_names_a_format_if_the_address_does_not() {
    for (content_type, format) in [
        ("binary/octet-stream+trie", IngestFormat::Trie),
        ("binary/octet-stream+tree", IngestFormat::Tree),
        ("multipart/form-data; boundary=x", IngestFormat::Pprof),
        ("text/plain", IngestFormat::Folded),
    ] {
        assert_eq!(IngestFormat::of_request(None, Some(content_type)), Ok(format));
        assert_eq!(IngestFormat::of_request(Some("lines"), Some(content_type)), Ok(IngestFormat::Lines));
    }
}

#[test]
fn what_a_form_says_of_pprofs_types() {
    let text = br#"{"contentions":{"units":"lock_samples","display-name":"mutex_count"},
        "inuse_space":{"units":"bytes","aggregation":"average","cumulative":false,"sampled":true}}"#;
    let read = sample_type_config(text).unwrap();
    let [contentions, space] = &read[..] else { panic!("{read:?}") };
    assert_eq!(
        (&contentions.sample_type[..], &contentions.units[..], &contentions.display_name[..]),
        ("contentions", "lock_samples", "mutex_count")
    );
    assert_eq!((&space.aggregation[..], space.is_cumulative, space.is_sampled), ("average", false, true));
    assert!(sample_type_config(b"{\"cpu\":1}").unwrap_err().to_string().contains("expected an object"));
    let many: Vec<String> = (0..65).map(|number| format!("\"t{number}\":{{}}")).collect();
    assert!(sample_type_config(format!("{{{}}}", many.join(",")).as_bytes()).unwrap_err().to_string().starts_with("more than 64 types"));
}

/// Each sample as `root;leaf values`.
fn stacks(profile: &Profile) -> Vec<String> {
    let of = |sample: &profile_import::ProfileSample| {
        let locations = profile.stacks[sample.stack as usize].locations.iter().rev();
        let names: Vec<&str> = locations.map(|id| profile.locations[id.0 as usize].frames[0].function.as_str()).collect();
        let values: Vec<String> = sample.values.iter().map(i64::to_string).collect();
        format!("{} {}", names.join(";"), values.join(","))
    };
    profile.samples.iter().map(of).collect()
}

fn read(bytes: &[u8], format: IngestFormat) -> Result<Profile, String> {
    decode(bytes, format, u64::MAX).map_err(|error| error.to_string())
}

#[test]
fn lines_and_folded_stacks() {
    assert_eq!(stacks(&read(b"main;work 12\nmain 3\n", IngestFormat::Folded).unwrap()), ["main;work 12", "main 3"]);
    assert_eq!(stacks(&read(b"main;work 12\nmain\n\nmain\n", IngestFormat::Lines).unwrap()), ["main;work 12 1", "main 1", "main 1"]);
}

/// Nodes of a tree: bytes, value, number of children.
fn nodes(nodes: &[(&str, u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value, children) in nodes {
        crate::leb128::put(&mut out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        crate::leb128::put(&mut out, *value);
        crate::leb128::put(&mut out, *children);
    }
    out
}

#[test]
fn a_trie_is_of_pieces_and_a_tree_of_functions() {
    let trie = nodes(&[("", 0, 2), ("main;w", 0, 2), ("ork", 300, 0), ("ait", 3, 1), (";lock", 4, 0), ("x", 1, 0)]);
    let expected = ["main;work 300", "main;wait 3", "main;wait;lock 4", "x 1"];
    assert_eq!(stacks(&read(&trie, IngestFormat::Trie).unwrap()), expected);
    let tree = nodes(&[("", 0, 2), ("main", 0, 2), ("work", 300, 0), ("wait", 3, 1), ("lock", 4, 0), ("x", 1, 0)]);
    assert_eq!(stacks(&read(&tree, IngestFormat::Tree).unwrap()), expected);
    let profile = read(&tree, IngestFormat::Tree).unwrap();
    assert_eq!((profile.locations.len(), profile.types[0].to_string()), (5, "samples/count".to_owned()));
}

#[test]
fn a_broken_tree_says_where() {
    let tree = nodes(&[("", 0, 1), ("main", 5, 0)]);
    for length in 0..tree.len() {
        let said = read(&tree[..length], IngestFormat::Tree).unwrap_err();
        assert!(said.starts_with("the bytes end inside a node"), "{said}");
    }
    let said = read(&[&tree[..], b"x"].concat(), IngestFormat::Tree).unwrap_err();
    assert_eq!(said, "bytes behind the last node, at byte 10 of the tree file");
    let said = read(&nodes(&[("x", u64::MAX, 0)]), IngestFormat::Trie).unwrap_err();
    assert_eq!(said, "a value of more than 63 bits, at byte 0 of the trie file");
}

#[test]
fn a_short_tree_of_long_stacks_is_refused() {
    // A chain in which each node ends a stack: 3 bytes each, and the stacks together are the square of that.
    let chain: Vec<(&str, u64, u64)> = (0..100_000).map(|_| ("a;", 1, 1)).chain([("a", 1, 0)]).collect();
    for format in [IngestFormat::Trie, IngestFormat::Tree] {
        let said = read(&nodes(&chain), format).unwrap_err();
        assert!(said.starts_with("longer stacks, when each is written out, than a file of this size may have"), "{said}");
    }
    let few: Vec<(&str, u64, u64)> = (0..=STACK_FRAMES_MAX).map(|_| ("a;", 0, 1)).chain([("a", 1, 0)]).collect();
    let profile = read(&nodes(&few), IngestFormat::Trie).unwrap();
    assert_eq!((profile.stacks[0].locations.len(), profile.stacks_cut), (STACK_FRAMES_MAX, 1));
    assert!(decode(&nodes(&[("a", 1, 0)]), IngestFormat::Tree, 100).unwrap_err().to_string().contains("memory"));
}

#[test]
fn speedscope_of_samples_and_of_events() {
    let file = br#"{"$schema":"https://www.speedscope.app/file-format-schema.json",
        "shared":{"frames":[{"name":"main"},{"name":"hash","file":"hash.rs","line":12,"col":3}]},
        "profiles":[
          {"type":"sampled","name":"a","unit":"milliseconds","startValue":0,"endValue":3,"samples":[[0,1],[0]],"weights":[1.5,2]},
          {"type":"evented","name":"b","unit":"bytes","startValue":0,"endValue":9,"events":[
            {"type":"O","frame":0,"at":1},{"type":"O","frame":1,"at":3},{"type":"C","frame":1,"at":7}]}]}"#;
    let profile = read(file, IngestFormat::Speedscope).unwrap();
    let types: Vec<String> = profile.types.iter().map(ToString::to_string).collect();
    assert_eq!(types, ["time/nanoseconds", "space/bytes"]);
    assert_eq!(stacks(&profile), ["main;hash 1500000,0", "main 2000000,0", "main 0,2", "main;hash 0,4", "main 0,2"]);
    let frame = &profile.locations[1].frames[0];
    assert_eq!((&frame.file[..], frame.line), ("hash.rs", 12));
}

#[test]
fn a_broken_speedscope_file_says_what() {
    let of = |profile: &str| {
        let file = format!(r#"{{"shared":{{"frames":[{{"name":"a"}}]}},"profiles":[{{{profile}}}]}}"#);
        read(file.as_bytes(), IngestFormat::Speedscope).unwrap_err()
    };
    for (profile, expected) in [
        (r#""type":"sampled","unit":"none","samples":[[1]],"weights":[1]"#, "a frame that is not in the table of frames"),
        (r#""type":"sampled","unit":"none","samples":[[0]],"weights":[1,2]"#, "other numbers of samples and of weights"),
        (r#""type":"sampled","unit":"none","samples":[[0]],"weights":[-1]"#, "a weight that is negative or no number"),
        (r#""type":"sampled","unit":"miles""#, "a unit that speedscope does not have"),
        (
            r#""type":"evented","unit":"none","events":[{"type":"C","frame":0,"at":0}]"#,
            "a frame that is closed and is not the innermost open one",
        ),
        (r#""type":"other","unit":"none""#, "a profile that is neither sampled nor evented"),
    ] {
        assert_eq!(of(profile), format!("{expected}, at byte 0 of the speedscope file"));
    }
    assert_eq!(read(b"{}", IngestFormat::Speedscope).unwrap_err(), "a file without profiles, at byte 0 of the speedscope file");
    assert!(read(b"[", IngestFormat::Speedscope).unwrap_err().contains("at line 1 column"));
    for list in ["\"profiles\":[", "\"shared\":{\"frames\":["] {
        let many = format!("{{{list}{}", "{},".repeat(200_000));
        assert!(read(many.as_bytes(), IngestFormat::Speedscope).unwrap_err().contains("nearly all of them say nothing"));
    }
}

#[test]
fn speedscope_comes_back_as_longpole_writes_it() {
    let written = |recording: &str| {
        let recording = longpole_model::text::parse(recording).unwrap();
        let mut file = Vec::new();
        crate::profile_export::speedscope::encode(&crate::profile_export::ProfileExport::new(&recording), &mut file).unwrap();
        read(&file, IngestFormat::Speedscope)
    };
    let process = "run x 0..9ms\nprocess a 0..9ms pid 7 under 1\n";
    let profile = written(&format!("{process}sample 1ms pid 7 main;hash@src/hash.rs:12\nsample 3ms pid 7 main\n")).unwrap();
    assert_eq!(
        (stacks(&profile), profile.types[0].to_string()),
        (vec!["main;hash 1000000".to_owned(), "main 1000000".to_owned()], "time/nanoseconds".to_owned())
    );
    assert!(profile.locations.iter().any(|location| location.frames[0].file.as_str() == "src/hash.rs"));
    // Without a thread there is no profile.
    assert_eq!(written("run x 0..1ms").unwrap_err(), "a file without profiles, at byte 0 of the speedscope file");
}

proptest! {
    #[test]
    fn any_bytes_are_a_profile_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for format in IngestFormat::ALL {
            if let Ok(profile) = decode(&bytes, format, 1 << 20) {
                prop_assert!(!profile.types.is_empty());
                prop_assert!(profile.samples.iter().all(|sample| sample.values.len() == profile.types.len()));
                prop_assert!(profile.samples.iter().all(|sample| (sample.stack as usize) < profile.stacks.len()));
            }
        }
        let _ = sample_type_config(&bytes);
    }

    #[test]
    fn any_tree_of_nodes_is_a_profile_or_refused(all in prop::collection::vec(("[a;]{0,3}", 0..3u64, 0..3u64), 0..40)) {
        let all: Vec<(&str, u64, u64)> = all.iter().map(|(name, value, children)| (&name[..], *value, *children)).collect();
        for format in [IngestFormat::Trie, IngestFormat::Tree] {
            let _ = decode(&nodes(&all), format, 1 << 20);
        }
    }

    #[test]
    fn any_name_is_read_or_refused(text in "[a-z.{}=,]{0,30}|.{0,30}") {
        let _ = app_name(&text);
        let _ = IngestParameters::parse([("name", &text[..]), ("from", &text), ("format", &text)], Some(&text));
    }
}
