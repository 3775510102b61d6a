//! Line 7, recordings as files: a segment or a `.lpole` that is damaged shows other numbers, panics the reader, or takes all memory.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use longpole_query::datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use longpole_query::datafusion::arrow::datatypes::{DataType, Field, Schema};
use longpole_query::datafusion::parquet::arrow::ArrowWriter;
use longpole_query::datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use longpole_query::datafusion::parquet::arrow::arrow_writer::ArrowWriterOptions;
use longpole_query::datafusion::parquet::file::properties::WriterProperties;

use crate::support::{Sandbox, binary, bounded, longpole};

/// Memory that a hostile file of some kilobytes may make longpole ask for: the limit of `ulimit -v`, which counts all of its libraries.
const ADDRESS_SPACE_KIB: u64 = 3 << 20;

/// A store with one recording: a trace of a few spans that was imported.
fn recorded(sandbox: &Sandbox, name: &str, db_millis: u64) -> PathBuf {
    let mut trace = String::new();
    for (id, parent, name, start, end) in
        [(1, 0, "up", 0, 300 + db_millis), (2, 1, "create db", 10, 10 + db_millis), (3, 1, "create web", 20 + db_millis, 250 + db_millis)]
    {
        let parent = if parent == 0 { String::new() } else { format!(r#","parentSpanId":"{parent:016x}""#) };
        let at = |millis: u64| 1_767_225_600_000_000_000 + millis * 1_000_000;
        trace.push_str(&format!(
            r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"{id:016x}"{parent},"name":"{name}","startTimeUnixNano":"{}","endTimeUnixNano":"{}"}}]}}]}}]}}"#,
            at(start),
            at(end)
        ));
        trace.push('\n');
    }
    let (file, store) = (sandbox.path("trace.json"), sandbox.path(name));
    std::fs::write(&file, trace).unwrap();
    assert!(longpole(&store).arg("import").arg(&file).stdout(Stdio::null()).status().unwrap().success());
    store
}

fn segments(store: &Path) -> PathBuf {
    store.join("recordings/r1/segments")
}

fn show(store: &Path) -> Output {
    longpole(store).args(["show", "r1", "--format", "json"]).output().unwrap()
}

/// What an attack must end in: an error of one line that names the file, nothing on stdout, and no trace of a panic.
fn assert_refused(out: &Output, names: &str) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{}: {said}", out.status);
    assert!(out.stdout.is_empty(), "numbers were shown all the same: {}", String::from_utf8_lossy(&out.stdout));
    assert!(said.contains(names), "the file is not named: {said}");
    assert!(!said.contains("panicked"), "{said}");
}

#[test]
fn segment_a_flipped_bit_never_changes_numbers() {
    flip(40);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn segment_of_400_flipped_bits_none_shows_other_numbers() {
    flip(400);
}

/// Flips bits of a recording, one after the other, and shows it each time.
fn flip(flips: usize) {
    let sandbox = Sandbox::new();
    let store = recorded(&sandbox, "store", 5_000);
    let whole = show(&store);
    assert!(whole.status.success());
    let mut files: Vec<PathBuf> = std::fs::read_dir(segments(&store)).unwrap().map(|entry| entry.unwrap().path()).collect();
    // Where that is damaged the tables are read, and the damage is reported beside them.
    files.retain(|path| !path.ends_with("memory"));
    files.sort();
    // Spans have the numbers that are shown, so half of the flips are theirs.
    let spans = segments(&store).join("spans.parquet");
    for number in 0..flips {
        let path = if number % 2 == 0 { &spans } else { &files[number / 2 % files.len()] };
        let bytes = std::fs::read(path).unwrap();
        let mut damaged = bytes.clone();
        let at = number * 7919 % bytes.len();
        damaged[at] ^= 1 << (number % 8);
        std::fs::write(path, damaged).unwrap();
        let out = show(&store);
        std::fs::write(path, bytes).unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!said.contains("panicked"), "byte {at} of {}: {said}", path.display());
        if out.status.success() {
            assert!(out.stdout == whole.stdout, "byte {at} of {} is another, and other numbers are shown", path.display());
        } else {
            assert_refused(&out, path.file_name().unwrap().to_str().unwrap());
        }
    }
    assert_eq!(show(&store).stdout, whole.stdout);
}

#[test]
fn segment_a_missing_table_is_reported_and_ls_works() {
    let sandbox = Sandbox::new();
    let store = recorded(&sandbox, "store", 5_000);
    std::fs::remove_file(segments(&store).join("waits.parquet")).unwrap();
    assert_refused(&show(&store), "waits.parquet");
    let listed = longpole(&store).arg("ls").output().unwrap();
    assert!(listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("r1"));
    assert!(longpole(&store).args(["rm", "r1"]).status().unwrap().success());
}

/// As it can come in a tar. Whoever opens it to read waits for somebody who writes.
#[test]
fn segment_a_named_pipe_delays_no_command() {
    let sandbox = Sandbox::new();
    let store = recorded(&sandbox, "store", 5_000);
    for name in ["checksums", "spans.parquet"] {
        let (path, aside) = (segments(&store).join(name), sandbox.path("aside"));
        std::fs::rename(&path, &aside).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        for command in [
            &["show", "r1"][..],
            &["frame", "f1", "r1"],
            &["sql", "SELECT count(*) FROM spans", "--recording", "r1"],
            &["export", "r1", "-o", "-", "--to", "otlp-json"],
        ] {
            assert_refused(&bounded(&store).args(command).output().unwrap(), name);
        }
        std::fs::rename(&aside, &path).unwrap();
    }
    assert!(show(&store).status.success());
}

#[test]
fn segment_a_table_of_another_recording_is_refused() {
    let sandbox = Sandbox::new();
    let (store, other) = (recorded(&sandbox, "store", 5_000), recorded(&sandbox, "other", 9_000));
    std::fs::copy(segments(&other).join("spans.parquet"), segments(&store).join("spans.parquet")).unwrap();
    for command in [
        &["show", "r1"][..],
        &["tree", "r1"],
        &["sql", "SELECT count(*) FROM spans", "--recording", "r1"],
        &["export", "r1", "-o", "-", "--to", "otlp-json"],
    ] {
        assert_refused(&longpole(&store).args(command).output().unwrap(), "spans.parquet");
    }
    let packed = sandbox.path("r1.lpole");
    assert_refused(&longpole(&store).args(["export", "r1", "-o"]).arg(&packed).output().unwrap(), "spans.parquet");
}

/// The members of a packed recording: all of the tar but its headers.
fn unpack(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let (mut members, mut at) = (BTreeMap::new(), 0);
    while bytes[at] != 0 {
        let text = |range: std::ops::Range<usize>| {
            std::str::from_utf8(&bytes[at + range.start..at + range.end]).unwrap().trim_end_matches([' ', '\0']).to_owned()
        };
        let length = usize::from_str_radix(&text(124..136), 8).unwrap();
        members.insert(text(0..100), bytes[at + 512..at + 512 + length].to_vec());
        at += 512 + length.next_multiple_of(512);
    }
    members
}

/// The tar of these members, with checksums that match: what somebody sends who knows the format.
fn pack(mut members: BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    if members.contains_key("segments/checksums") {
        let mut list = "longpole checksums 1\n".to_owned();
        for (name, member) in &members {
            if let Some(name) = name.strip_prefix("segments/").filter(|name| name.ends_with(".parquet")) {
                list.push_str(&format!("{:08x} {} {name}\n", crc32c(member), member.len()));
            }
        }
        list.push_str(&format!("{:08x} end\n", crc32c(list.as_bytes())));
        members.insert("segments/checksums".into(), list.into_bytes());
    }
    let mut tar = Vec::new();
    let format = members.remove_entry("format");
    for (name, member) in format.into_iter().chain(members) {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[124..135].copy_from_slice(format!("{:011o}", member.len()).as_bytes());
        header[148..156].fill(b' ');
        header[156] = b'0';
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        tar.extend(header);
        tar.extend(&member);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    tar
}

fn crc32c(bytes: &[u8]) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| bit(crc)))
}

/// The packed recording of a store.
fn packed(store: &Path, sandbox: &Sandbox) -> Vec<u8> {
    let path = sandbox.path("whole.lpole");
    assert!(longpole(store).args(["export", "r1", "-o"]).arg(&path).stdout(Stdio::null()).status().unwrap().success());
    std::fs::read(path).unwrap()
}

/// Shows a file with little memory.
fn show_in_little_memory(sandbox: &Sandbox, bytes: &[u8]) -> Output {
    let path = sandbox.path("hostile.lpole");
    std::fs::write(&path, bytes).unwrap();
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {ADDRESS_SPACE_KIB}; ulimit -c 0; exec \"$0\" --store \"$1\" show \"$2\" --format json");
    command.args(["-c", &script]).arg(binary()).arg(sandbox.path("empty")).arg(&path);
    crate::support::clean(&mut command);
    command.output().unwrap()
}

#[test]
fn lpole_a_flipped_bit_never_changes_numbers() {
    flip_packed(40);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn lpole_of_400_flipped_bits_none_shows_other_numbers() {
    flip_packed(400);
}

fn flip_packed(flips: usize) {
    let sandbox = Sandbox::new();
    let store = recorded(&sandbox, "store", 5_000);
    let bytes = packed(&store, &sandbox);
    let path = sandbox.path("mail.lpole");
    let show = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        longpole(&sandbox.path("empty")).arg("show").arg(&path).args(["--format", "json"]).output().unwrap()
    };
    let whole = show(&bytes);
    assert!(whole.status.success());
    for number in 0..flips {
        let mut damaged = bytes.clone();
        let at = number * 7919 % bytes.len();
        damaged[at] ^= 1 << (number % 8);
        let out = show(&damaged);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!said.contains("panicked"), "byte {at}: {said}");
        // Time, owner and padding of a tar mean nothing to a recording.
        assert!(!out.status.success() || out.stdout == whole.stdout, "byte {at} is another, and other numbers are shown");
    }
}

#[test]
fn lpole_with_a_repeated_text_needs_no_gigabytes() {
    let sandbox = Sandbox::new();
    let mut members = unpack(&packed(&recorded(&sandbox, "store", 5_000), &sandbox));
    let honest = show_in_little_memory(&sandbox, &pack(members.clone()));
    assert!(honest.status.success(), "{}", String::from_utf8_lossy(&honest.stderr));

    // One text of 128 KiB in a dictionary, and 32,768 losses that have it: 4 GiB.
    let losses = members.get_mut("segments/losses.parquet").unwrap();
    let text = "x".repeat(128 << 10);
    let batch = |_| -> Vec<ArrayRef> {
        vec![
            Arc::new(StringViewArray::from_iter_values(vec!["samples_lost"; 1024])),
            Arc::new(Int64Array::from(vec![1; 1024])),
            Arc::new(StringViewArray::from_iter_values(vec![text.as_str(); 1024])),
        ]
    };
    *losses = rewritten(losses, (0..32).map(batch));
    let bytes = pack(members);
    assert!(bytes.len() < 1 << 20, "it has {} bytes", bytes.len());
    let out = show_in_little_memory(&sandbox, &bytes);
    assert_eq!(out.status.signal(), None, "it died for want of memory");
    assert_refused(&out, "losses.parquet");
    assert!(String::from_utf8_lossy(&out.stderr).contains("memory"), "{}", String::from_utf8_lossy(&out.stderr));
}

/// A table with other rows: of the same columns, and with the same said in its footer.
fn rewritten(table: &[u8], batches: impl Iterator<Item = Vec<ArrayRef>>) -> Vec<u8> {
    let table = ParquetRecordBatchReaderBuilder::try_new(axum::body::Bytes::copy_from_slice(table)).unwrap();
    let said = table.metadata().file_metadata().key_value_metadata().unwrap().iter().filter(|pair| pair.key.starts_with("longpole."));
    let properties =
        WriterProperties::builder().set_key_value_metadata(Some(said.cloned().collect())).set_dictionary_page_size_limit(8 << 20);
    let views = table.schema().fields().iter().map(|field| match field.data_type() {
        DataType::Utf8 => Field::new(field.name(), DataType::Utf8View, field.is_nullable()),
        other => Field::new(field.name(), other.clone(), field.is_nullable()),
    });
    let schema = Arc::new(Schema::new(views.collect::<Vec<_>>()));
    let mut bytes = Vec::new();
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(&mut bytes, Arc::clone(&schema), options).unwrap();
    for columns in batches {
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    }
    writer.close().unwrap();
    bytes
}

#[test]
fn lpole_without_checksums_is_read_and_packed_unchanged() {
    let sandbox = Sandbox::new();
    let fixture = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings").join(name);
    let (old, store) = (fixture("version-5.lpole"), sandbox.path("store"));
    // Each is named as it was called.
    let shown = |what: &Path| {
        let mut shown = crate::support::json(longpole(&store).arg("show").arg(what).args(["--format", "json"]));
        shown.as_object_mut().unwrap().retain(|name, _| name != "recording" && name != "command");
        shown
    };
    assert!(longpole(&store).arg("import").arg(fixture("deploy.json")).stdout(Stdio::null()).status().unwrap().success());
    // Except for what the file cannot hold.
    let mut of_old = shown(&old);
    let notes = of_old["quality"].as_array_mut().unwrap();
    let before = notes.len();
    notes.retain(|note| !note["detail"].as_str().unwrap().starts_with("no checksums"));
    assert_eq!(before - notes.len(), 1);
    assert_eq!(of_old, shown(&fixture("deploy.json")));

    // In an older store: a recording without a list stays one.
    put_back(&store, &old);
    let packed = sandbox.path("again.lpole");
    assert!(longpole(&store).args(["export", "r1", "-o"]).arg(&packed).stdout(Stdio::null()).status().unwrap().success());
    assert!(std::fs::read(&packed).unwrap() == std::fs::read(&old).unwrap(), "another file came out");
    assert!(
        longpole(&store).args(["sql", "SELECT count(*) FROM spans", "--recording", "r1"]).stdout(Stdio::null()).status().unwrap().success()
    );
}

/// Makes recording `r1` of a store what an older longpole would have left there.
fn put_back(store: &Path, packed: &Path) {
    let recording = store.join("recordings/r1");
    std::fs::remove_dir_all(recording.join("segments")).unwrap();
    std::fs::create_dir(recording.join("segments")).unwrap();
    for (name, member) in unpack(&std::fs::read(packed).unwrap()) {
        std::fs::write(recording.join(name), member).unwrap();
    }
}

#[test]
fn segment_without_checksums_that_is_damaged_panics_no_command() {
    let sandbox = Sandbox::new();
    let store = recorded(&sandbox, "store", 5_000);
    put_back(&store, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/recordings/version-5.lpole"));
    let spans = segments(&store).join("spans.parquet");
    let whole = std::fs::read(&spans).unwrap();
    // Two bytes at 6256 make the start of a column negative, which panicked Parquet's reader.
    for at in (0..24).map(|number| number * whole.len() / 24).chain([6256]) {
        let mut damaged = whole.clone();
        damaged[at..].iter_mut().take(2).for_each(|byte| *byte ^= 0x55);
        std::fs::write(&spans, damaged).unwrap();
        for command in [&["show", "r1"][..], &["sql", "SELECT * FROM spans", "--recording", "r1"]] {
            let out = longpole(&store).args(command).output().unwrap();
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(
                !said.contains("panicked") && matches!(out.status.code(), Some(0 | 1)),
                "{command:?}, byte {at}: {}: {said}",
                out.status
            );
        }
    }
}

#[test]
fn lpole_of_forged_tables_panics_no_command() {
    forge(12);
}

#[test]
#[ignore = "slow: cargo xtask attack runs it"]
fn lpole_of_300_forged_tables_panics_no_command() {
    forge(300);
}

/// Changes one table of a packed recording, makes its checksum match, imports it and asks every command that reads tables. Whatever
/// the tables say then, longpole answers or refuses; it does not panic, and is not killed for its memory.
fn forge(times: usize) {
    let sandbox = Sandbox::new();
    let ran = sandbox.path("ran");
    let command = ["sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; true & wait"];
    assert!(longpole(&ran).args(["run", "--summary", "none", "--"]).args(command).status().unwrap().success());
    let wholes = [packed(&recorded(&sandbox, "store", 5_000), &sandbox), packed(&ran, &sandbox)];
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let (mut answered, mut refused) = (0, 0);
    for number in 0..times {
        let mut members = unpack(&wholes[number % 2]);
        let tables: Vec<String> = members.keys().filter(|name| name.ends_with(".parquet")).cloned().collect();
        let name = &tables[random(tables.len())];
        let table = members.get_mut(name).unwrap();
        for _ in 0..1 + random(2) {
            let at = random(table.len());
            match random(3) {
                0 => table[at] ^= 1 << random(8),
                1 => table[at] = [0, 0x7f, 0x80, 0xff][random(4)],
                _ => table[at..].iter_mut().take(8).for_each(|byte| *byte = 0xff),
            }
        }
        let file = sandbox.path("forged.lpole");
        std::fs::write(&file, pack(members)).unwrap();
        let store = sandbox.path("forged");
        let imported = longpole(&store).arg("import").arg(&file).output().unwrap();
        let mut outs = vec![("import", imported)];
        if outs[0].1.status.success() {
            for command in ["show", "tree", "flame", "top", "processes", "threads", "export"] {
                let mut asked = longpole(&store);
                asked.args([command, "last"]);
                if command == "export" {
                    asked.args(["--to", "chrome"]);
                }
                outs.push((command, asked.output().unwrap()));
            }
            let sql = "SELECT count(*), sum(duration_nanos / 1000) FROM spans";
            outs.push(("sql", longpole(&store).args(["sql", sql]).output().unwrap()));
            assert!(longpole(&store).args(["rm", "last"]).stdout(Stdio::null()).status().unwrap().success());
            answered += 1;
        } else {
            refused += 1;
        }
        for (command, out) in outs {
            let said = String::from_utf8_lossy(&out.stderr);
            assert!(
                !said.contains("panicked") && matches!(out.status.code(), Some(0 | 1)),
                "{command} of forged table {number}, {name}: {}: {said}",
                out.status
            );
        }
    }
    println!("of {times} forged recordings {answered} were answered and {refused} refused");
}
