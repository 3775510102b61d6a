//! Files that are nearly right: a real file with a few of its numbers, fields, records or lines changed.
//!
//! Bytes flipped at random are refused at the door. What reaches the sums behind it is a whole file with one hostile number in it, so
//! each format is changed in its own terms, and lengths and sizes around the change are made right again.
//!
//! Compiled into the tests of `longpole-recording` and the attacks of `longpole`. The same number gives the same file, on any machine.

use std::path::{Path, PathBuf};

use longpole_testing::random::Random;

/// A real file, and what it is made of.
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shape: Shape,
}

/// In which terms a file is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Protobuf,
    /// JSON, folded stacks: numbers between other characters.
    Text,
    PerfData,
    /// Gob and the like: words and bytes at any place.
    Binary,
}

/// The formats by the name that `LONGPOLE_FUZZ_FORMAT` takes, with the real files there are of each.
const SEEDS: &[(&str, Shape, &[&str])] = &[
    (
        "perf_data",
        Shape::PerfData,
        &[
            "fixtures/perf/dwarf.data",
            "fixtures/perf/events.data",
            "fixtures/perf/frame-pointers.data",
            "fixtures/perf/pipe.data",
            "fixtures/perf/zstd.data",
        ],
    ),
    ("pprof", Shape::Protobuf, &["fixtures/pprof/go-cpu.pb"]),
    (
        "otlp_profiles",
        Shape::Protobuf,
        &["fixtures/otlp-profiles/app.otlp-profiles", "fixtures/otlp-profiles/python-proto-1.38.otlp-profiles"],
    ),
    ("folded", Shape::Text, &[]),
    ("otlp_protobuf", Shape::Protobuf, &["fixtures/otlp/python.pb"]),
    ("otlp_json", Shape::Text, &["fixtures/otlp/node.json"]),
    ("zipkin", Shape::Text, &["fuzz/corpus/files/zipkin.seed"]),
    ("jaeger", Shape::Text, &["fuzz/corpus/files/jaeger.seed"]),
    ("appdash", Shape::Binary, &["fixtures/appdash/golden.up.trace", "fuzz/corpus/files/appdash.seed"]),
];

/// Stacks as `stackcollapse-*.pl` write them, and as nobody does.
const FOLDED: &[u8] = b"main;work;hash 12\nmain;work;read file 30\nmain;idle 1\n# comment\nmain;work;hash 2\n";

/// Spans that overlap, nest, stick out and follow each other, of two services.
const SPANS: &[u8] = br#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}},{"key":"process.pid","value":{"intValue":"7"}}]},"scopeSpans":[{"scope":{"name":"s"},"spans":[
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","name":"root","kind":1,"startTimeUnixNano":"1700000000000000000","endTimeUnixNano":"1700000009000000000"},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203332","parentSpanId":"b7ad6b7169203331","name":"fetch","kind":3,"startTimeUnixNano":"1700000001000000000","endTimeUnixNano":"1700000005000000000","events":[{"timeUnixNano":"1700000001500000000","name":"e"}]},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203334","parentSpanId":"b7ad6b7169203331","name":"fetch","kind":1,"startTimeUnixNano":"1700000002000000000","endTimeUnixNano":"1700000006000000000"},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203335","parentSpanId":"b7ad6b7169203334","name":"job","kind":1,"startTimeUnixNano":"1700000002000000000","endTimeUnixNano":"1700000003000000000"},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203336","parentSpanId":"b7ad6b7169203334","name":"job","kind":1,"startTimeUnixNano":"1700000003000000000","endTimeUnixNano":"1700000004000000000"},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203337","parentSpanId":"b7ad6b7169203334","name":"job","kind":1,"startTimeUnixNano":"1700000004000000000","endTimeUnixNano":"1700000006500000000"}]}]},
{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"b"}}]},"scopeSpans":[{"spans":[
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203333","parentSpanId":"b7ad6b7169203332","name":"serve","kind":2,"startTimeUnixNano":"1700000001200000000","endTimeUnixNano":"1700000004800000000"},
{"traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203338","parentSpanId":"b7ad6b7169203333","name":"query","kind":3,"startTimeUnixNano":"1700000001300000000","endTimeUnixNano":"1700000002800000000"}]}]}]}
"#;

/// The real files of a format, or of all formats.
pub(crate) fn seeds(format: Option<&str>) -> Vec<Seed> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seeds = Vec::new();
    for (name, shape, files) in SEEDS.iter().filter(|(name, ..)| format.is_none_or(|format| format == *name)) {
        let mut add = |bytes: &[u8]| seeds.push(Seed { name: (*name).to_owned(), bytes: bytes.to_vec(), shape: *shape });
        for file in *files {
            let path = root.join(file);
            add(&std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        }
        match *name {
            "folded" => add(FOLDED),
            "otlp_json" => add(SPANS),
            _ => {}
        }
    }
    let names: Vec<&str> = SEEDS.iter().map(|(name, ..)| *name).collect();
    assert!(!seeds.is_empty(), "{format:?} is no format; there are {names:?}");
    seeds
}

/// A number at which arithmetic breaks, or a neighbour of the one that was there.
pub(crate) fn hostile(random: &mut Random, was: u64) -> u64 {
    const HOSTILE: [u64; 24] = [
        0,
        1,
        2,
        7,
        63,
        64,
        255,
        4096,
        65_535,
        1 << 31,
        (1 << 31) - 1,
        u32::MAX as u64,
        1 << 32,
        1 << 62,
        (1 << 63) - 1,
        (1 << 63) - 2,
        1 << 63,
        (1 << 63) + 1,
        u64::MAX,
        u64::MAX - 1,
        // One second before 1970, and marks of call chains.
        (-1_000_000_000i64) as u64,
        (-128i64) as u64,
        (-512i64) as u64,
        1_700_000_000_000_000_000,
    ];
    match random.below(10) {
        0..=5 => HOSTILE[random.below(HOSTILE.len())],
        6 => was.wrapping_add(random.below(9) as u64).wrapping_sub(4),
        7 => was.wrapping_mul(2),
        8 => was.wrapping_neg(),
        _ => 1u64.rotate_left(random.below(64) as u32).wrapping_sub(random.below(2) as u64),
    }
}

/// A file made of a real one.
pub(crate) fn mutate(seed: &Seed, random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    for _ in 0..=random.below(4) {
        if random.one_in(12) {
            of_bytes(&mut bytes, random);
            continue;
        }
        match seed.shape {
            Shape::Protobuf => of_protobuf(&mut bytes, random),
            Shape::Text => of_text(&mut bytes, random),
            Shape::PerfData => of_perf_data(&mut bytes, random),
            Shape::Binary => of_bytes(&mut bytes, random),
        }
    }
    bytes
}

/// Words, bytes and ranges, whatever they mean.
fn of_bytes(bytes: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(at),
        1 => {
            let end = (at + 1 + random.below(64)).min(bytes.len());
            bytes.drain(at.min(end)..end);
        }
        2 => {
            let end = (at + 1 + random.below(64)).min(bytes.len());
            let again = bytes[at.min(end)..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 | 4 => put_word(bytes, at, random),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = hostile(random, u64::from(*byte)) as u8;
            }
        }
    }
}

fn put_word(bytes: &mut [u8], at: usize, random: &mut Random) {
    let size = [2, 4, 8, 8][random.below(4)];
    if let Some(word) = bytes.get_mut(at..at + size) {
        let mut was = [0; 8];
        was[..size].copy_from_slice(word);
        word.copy_from_slice(&hostile(random, u64::from_le_bytes(was)).to_le_bytes()[..size]);
    }
}

/// Numbers, words between quotes, and lines or braces.
fn of_text(bytes: &mut Vec<u8>, random: &mut Random) {
    let start = random.below(bytes.len());
    match random.below(10) {
        0..=6 => {
            // The next run of digits that is a number by itself.
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let mut at = start;
            while at < bytes.len() {
                if bytes[at].is_ascii_digit() && (at == 0 || !is_part(bytes[at - 1])) {
                    let end = at + bytes[at..].iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(bytes.len() - at);
                    if bytes.get(end).is_none_or(|byte| !is_part(*byte)) {
                        let was = std::str::from_utf8(&bytes[at..end]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
                        let number = hostile(random, was);
                        let text = match random.below(6) {
                            0 => number.cast_signed().to_string(),
                            1 => format!("{number}.{}", random.below(1000)),
                            2 => format!("{:e}", number as f64),
                            _ => number.to_string(),
                        };
                        bytes.splice(at..end, text.into_bytes());
                        return;
                    }
                    at = end;
                }
                at += 1;
            }
        }
        7 => {
            // An id or a name takes the place of another one.
            let texts: Vec<(usize, usize)> = quoted(bytes);
            if texts.len() > 1 {
                let (from, to) = (texts[random.below(texts.len())], texts[random.below(texts.len())]);
                let text = bytes[from.0..from.1].to_vec();
                bytes.splice(to.0..to.1, text);
            }
        }
        _ => {
            // A line, or an object, twice or not at all.
            let lines: Vec<(usize, usize)> =
                if bytes.first() == Some(&b'{') || bytes.first() == Some(&b'[') { objects(bytes) } else { lines(bytes) };
            if let Some((from, to)) = lines.get(random.below(lines.len())).copied() {
                let mut again = bytes[from..to].to_vec();
                if random.one_in(2) {
                    again.extend_from_slice(if bytes[from] == b'{' { b"," } else { b"\n" });
                    bytes.splice(from..from, again);
                } else {
                    bytes.splice(from..to, if bytes[from] == b'{' { b"{}".to_vec() } else { Vec::new() });
                }
            }
        }
    }
}

fn quoted(bytes: &[u8]) -> Vec<(usize, usize)> {
    let quotes: Vec<usize> = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'"').map(|(at, _)| at).collect();
    quotes.chunks_exact(2).map(|pair| (pair[0] + 1, pair[1])).collect()
}

fn lines(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut at = 0;
    let mut found = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        found.push((at, at + line.len()));
        at += line.len();
    }
    found
}

fn objects(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut open, mut found) = (Vec::new(), Vec::new());
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'{' => open.push(at),
            b'}' => found.extend(open.pop().map(|from| (from, at + 1))),
            _ => {}
        }
    }
    found
}

/// A message of protobuf, as far as its bytes show it.
#[derive(Clone)]
struct Field {
    number: u64,
    value: Value,
}

#[derive(Clone)]
enum Value {
    Number(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn message(bytes: &[u8], depth: u32) -> Option<Vec<Field>> {
    let (mut at, mut fields) = (0, Vec::new());
    while at < bytes.len() {
        let key = varint(bytes, &mut at)?;
        if key >> 3 == 0 || key >> 3 > 4096 {
            return None;
        }
        let value = match key & 7 {
            0 => Value::Number(varint(bytes, &mut at)?),
            1 => {
                at += 8;
                Value::Fixed64(bytes.get(at - 8..at)?.try_into().ok()?)
            }
            5 => {
                at += 4;
                Value::Fixed32(bytes.get(at - 4..at)?.try_into().ok()?)
            }
            2 => {
                let length = usize::try_from(varint(bytes, &mut at)?).ok()?;
                let content = bytes.get(at..at.checked_add(length)?)?;
                at += length;
                match (depth < 12 && !content.is_empty()).then(|| message(content, depth + 1)).flatten() {
                    Some(inner) => Value::Message(inner),
                    None => Value::Bytes(content.to_vec()),
                }
            }
            _ => return None,
        };
        fields.push(Field { number: key >> 3, value });
    }
    Some(fields)
}

fn encode(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields {
        let key = |kind: u64| field.number << 3 | kind;
        match &field.value {
            Value::Number(number) => {
                put_varint(&mut out, key(0));
                put_varint(&mut out, *number);
            }
            Value::Fixed64(bytes) => {
                put_varint(&mut out, key(1));
                out.extend(bytes);
            }
            Value::Fixed32(bytes) => {
                put_varint(&mut out, key(5));
                out.extend(bytes);
            }
            Value::Bytes(bytes) => {
                put_varint(&mut out, key(2));
                put_varint(&mut out, bytes.len() as u64);
                out.extend(bytes);
            }
            Value::Message(fields) => {
                let inner = encode(fields);
                put_varint(&mut out, key(2));
                put_varint(&mut out, inner.len() as u64);
                out.extend(inner);
            }
        }
    }
    out
}

/// How many fields there are in all.
fn count(fields: &[Field]) -> usize {
    fields.iter().map(|field| 1 + if let Value::Message(inner) = &field.value { count(inner) } else { 0 }).sum()
}

fn of_protobuf(bytes: &mut Vec<u8>, random: &mut Random) {
    let Some(mut fields) = message(bytes, 0) else { return of_bytes(bytes, random) };
    let mut left = random.below(count(&fields));
    change(&mut fields, &mut left, random);
    *bytes = encode(&fields);
}

/// Changes the field behind `left` others; whether it was found.
fn change(fields: &mut Vec<Field>, left: &mut usize, random: &mut Random) -> bool {
    for index in 0..fields.len() {
        if *left == 0 {
            match random.below(12) {
                0 => {
                    fields.remove(index);
                }
                1 => {
                    let (field, times) = (fields[index].clone(), 1 + random.below(4));
                    fields.splice(index..index, std::iter::repeat_n(field, times));
                }
                2 => fields[index].number = 1 + random.below(16) as u64,
                3 => {
                    let other = random.below(fields.len());
                    fields.swap(index, other);
                }
                _ => change_value(&mut fields[index].value, random),
            }
            return true;
        }
        *left -= 1;
        if let Value::Message(inner) = &mut fields[index].value
            && change(inner, left, random)
        {
            return true;
        }
    }
    false
}

fn change_value(value: &mut Value, random: &mut Random) {
    match value {
        Value::Number(number) => *number = hostile(random, *number),
        Value::Fixed64(bytes) => *bytes = hostile(random, u64::from_le_bytes(*bytes)).to_le_bytes(),
        Value::Fixed32(bytes) => *bytes = (hostile(random, u32::from_le_bytes(*bytes).into()) as u32).to_le_bytes(),
        Value::Bytes(bytes) => {
            // Packed numbers, or a text.
            let (mut at, mut numbers) = (0, Vec::new());
            while at < bytes.len() {
                match varint(bytes, &mut at) {
                    Some(number) => numbers.push(number),
                    None => return of_bytes(bytes, random),
                }
            }
            if random.one_in(8) {
                numbers.push(0);
            }
            let place = random.below(numbers.len());
            if let Some(number) = numbers.get_mut(place) {
                *number = hostile(random, *number);
            }
            bytes.clear();
            numbers.into_iter().for_each(|number| put_varint(bytes, number));
        }
        Value::Message(fields) => {
            // What looked like a message may have been packed numbers.
            let mut bytes = encode(fields);
            of_bytes(&mut bytes, random);
            *value = Value::Bytes(bytes);
        }
    }
}

/// Words of the header, of the descriptions of events, of records; records twice or not at all.
fn of_perf_data(bytes: &mut Vec<u8>, random: &mut Random) {
    let word = |bytes: &[u8], at: usize| bytes.get(at..at + 8).map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let is_pipe = word(bytes, 8) == 16;
    let (start, size) = if is_pipe { (16, bytes.len().saturating_sub(16)) } else { (word(bytes, 40) as usize, word(bytes, 48) as usize) };
    let end = start.saturating_add(size).min(bytes.len());
    if random.one_in(6) {
        let at = random.below(start.min(bytes.len()) / 8) * 8 + [0, 0, 0, 4][random.below(4)];
        return put_word(bytes, at, random);
    }
    if !is_pipe && random.one_in(12) {
        let at = end + random.below(bytes.len().saturating_sub(end));
        return put_word(bytes, at, random);
    }
    let mut records = Vec::new();
    let mut at = start;
    while at.saturating_add(8) <= end {
        let size = usize::from(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]));
        if size < 8 || at + size > end {
            break;
        }
        records.push((at, size));
        at += size;
    }
    let Some((at, size)) = records.get(random.below(records.len())).copied() else { return of_bytes(bytes, random) };
    match random.below(12) {
        kind @ (0 | 1) => {
            let record = bytes[at..at + size].to_vec();
            let grown = if kind == 0 {
                bytes.splice(at..at, record);
                size.cast_signed()
            } else {
                bytes.drain(at..at + size);
                -size.cast_signed()
            };
            if !is_pipe {
                // The features lie behind: their places move with them.
                let new_size = word(bytes, 48).wrapping_add_signed(grown as i64);
                bytes[48..56].copy_from_slice(&new_size.to_le_bytes());
            }
        }
        2 => put_word(bytes, at + [0, 4, 6][random.below(3)], random),
        // Few words at the beginning mean most: addresses, processes, times, periods, counts.
        3..=7 => put_word(bytes, at + 8 + random.below((size.saturating_sub(8) / 8).min(8)) * 8, random),
        8 => put_word(bytes, (at + size).saturating_sub(8 * (1 + random.below(6))), random),
        _ => put_word(bytes, at + 8 + random.below(size.saturating_sub(8) / 4) * 4, random),
    }
}
