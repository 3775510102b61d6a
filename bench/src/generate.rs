//! `longpole-bench gen`: span sets of any size and shape, the same bytes for the same seed.
//!
//! ```text
//! longpole-bench gen --spans 1000000 --shape one --seed 1 --format otlp-jsonl > spans.jsonl
//! ```
//!
//! | shape | what it is |
//! |---|---|
//! | `one` | one trace, branching at random to about a dozen levels |
//! | `many` | traces of ten spans |
//! | `deep` | chains of ten thousand levels |
//! | `wide` | one span with all others as its children |
//!
//! `otlp-jsonl` is what a batch processor sends: 512 spans a line, ended spans first. `up.trace` is AppDash's gob file as Pulumi
//! writes it, with its duplication: the map `Span` holds each span's whole subtree again, so a span stands once for itself and once
//! more for each of its ancestors. The bytes are made here and not by longpole's own encoder, so that reading them proves something.

use std::io::{BufWriter, Write};

use anyhow::{Context, Result, bail, ensure};
use longpole_testing::random::Random;

/// 2026-01-01 in Unix nanoseconds: when the first span begins.
const ORIGIN_UNIX_NANO: u64 = 1_767_225_600_000_000_000;

/// Levels of a chain of shape `deep`.
const DEEP_LEVELS: usize = 10_000;

/// Spans of a trace of shape `many`.
const MANY_SPANS: usize = 10;

/// Levels of shape `one`.
const ONE_LEVELS: usize = 12;

/// Spans of a line: the default of batch processors.
const LINE_SPANS: usize = 512;

/// Bytes of a payload log in `up.trace`; with the rest, the 1.7 kB of a span of a real deployment.
const PAYLOAD_BYTES: usize = 1_300;

const SERVICES: [&str; 6] = ["engine", "host", "provider-compute", "provider-cloud", "backend", "registry"];
const OPERATIONS: [&str; 12] =
    ["create", "check", "diff", "read", "invoke", "register", "bind schema", "resolve", "GET /v1/items", "POST /v1/items", "open", "write"];

/// One span, before it has a format.
#[derive(Debug, Clone)]
struct Made {
    trace: u64,
    id: u64,
    parent: u64,
    start: u64,
    end: u64,
    operation: usize,
    service: usize,
    number: u64,
}

/// An id: 63 bits, not zero, as AppDash has them.
fn random_id(random: &mut Random) -> u64 {
    random.next() >> 1 | 1
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    One,
    Many,
    Deep,
    Wide,
}

/// A span that is open while its tree is made.
struct Open {
    made: Made,
    /// The latest end among its children.
    end_min: u64,
}

/// Makes the spans of a shape and gives each to `take` when it ends, children first.
fn make(spans: usize, shape: Shape, seed: u64, take: &mut dyn FnMut(Made) -> Result<()>) -> Result<()> {
    let mut random = Random(seed);
    let mut open: Vec<Open> = Vec::new();
    let mut now = ORIGIN_UNIX_NANO;
    let mut trace = random_id(&mut random);
    for number in 0..spans {
        let ends_before = match shape {
            Shape::Wide => open.len() > 1,
            Shape::Deep => number % DEEP_LEVELS == 0 && number > 0,
            Shape::Many => number % MANY_SPANS == 0 && number > 0,
            Shape::One => open.len() > 1 && (open.len() >= ONE_LEVELS || random.below(2) == 0),
        };
        if ends_before {
            // All of it where a new trace begins or, for chains, below the one root; else one, or some.
            let left = match shape {
                Shape::Many => 0,
                Shape::Deep | Shape::Wide => 1,
                Shape::One => 1 + random.below(open.len() - 1),
            };
            while open.len() > left {
                now = close(&mut open, now, &mut random, take)?;
            }
        }
        if open.is_empty() {
            trace = random_id(&mut random);
        } else if shape == Shape::Many && open.len() > 1 && random.below(2) == 0 {
            now = close(&mut open, now, &mut random, take)?;
        }
        now += 1_000 + random.below(50_000) as u64;
        let parent = open.last().map_or(0, |above| above.made.id);
        let made = Made {
            trace,
            id: random_id(&mut random),
            parent,
            start: now,
            end: 0,
            operation: random.below(OPERATIONS.len()),
            service: random.below(SERVICES.len()),
            number: number as u64,
        };
        open.push(Open { made, end_min: 0 });
    }
    while !open.is_empty() {
        now = close(&mut open, now, &mut random, take)?;
    }
    Ok(())
}

/// Ends the innermost span, and says when the next may begin: after it, or while it still ran, as parallel work does.
fn close(open: &mut Vec<Open>, now: u64, random: &mut Random, take: &mut dyn FnMut(Made) -> Result<()>) -> Result<u64> {
    let Some(Open { mut made, end_min }) = open.pop() else { return Ok(now) };
    made.end = now.max(end_min) + 500 + random.below(20_000) as u64;
    if let Some(above) = open.last_mut() {
        above.end_min = above.end_min.max(made.end);
    }
    let next = if random.below(2) == 0 { made.end } else { made.start + (made.end - made.start) / 8 };
    take(made)?;
    Ok(next)
}

/// What the arguments ask for, written to standard output or `-o`.
pub(crate) fn generate(arguments: &[&str]) -> Result<()> {
    const USAGE: &str =
        "usage: longpole-bench gen --spans N [--shape one|many|deep|wide] [--seed N] [--format otlp-jsonl|up.trace] [-o FILE]";
    let (mut spans, mut shape, mut seed, mut format, mut output) = (None, Shape::One, 1, "otlp-jsonl", None);
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = *rest.next().context(USAGE)?;
        match *name {
            "--spans" => spans = Some(value.replace('_', "").parse::<usize>().context(USAGE)?),
            "--seed" => seed = value.parse().context(USAGE)?,
            "--format" => format = value,
            "-o" | "--output" => output = Some(value),
            "--shape" => {
                shape = match value {
                    "one" => Shape::One,
                    "many" => Shape::Many,
                    "deep" => Shape::Deep,
                    "wide" => Shape::Wide,
                    _ => bail!(USAGE),
                }
            }
            _ => bail!(USAGE),
        }
    }
    let spans = spans.context(USAGE)?;
    let mut out: BufWriter<Box<dyn Write>> = BufWriter::with_capacity(
        1 << 20,
        match output {
            Some(path) => Box::new(std::fs::File::create(path).with_context(|| format!("failed to create {path}"))?),
            None => Box::new(std::io::stdout().lock()),
        },
    );
    match format {
        "otlp-jsonl" => otlp_lines(spans, shape, seed, &mut out)?,
        "up.trace" => up_trace(spans, shape, seed, &mut out)?,
        _ => bail!(USAGE),
    }
    out.flush().context("failed to write the spans")
}

fn otlp_lines(spans: usize, shape: Shape, seed: u64, out: &mut dyn Write) -> Result<()> {
    let mut waiting: Vec<Made> = Vec::with_capacity(LINE_SPANS);
    make(spans, shape, seed, &mut |made| {
        waiting.push(made);
        if waiting.len() == LINE_SPANS {
            otlp_line(&waiting, out)?;
            waiting.clear();
        }
        Ok(())
    })?;
    if waiting.is_empty() { Ok(()) } else { otlp_line(&waiting, out) }
}

/// One request: the spans of each service together.
fn otlp_line(spans: &[Made], out: &mut dyn Write) -> Result<()> {
    write!(out, "{{\"resourceSpans\":[")?;
    let mut first = true;
    for (index, service) in SERVICES.iter().enumerate() {
        let mut own = spans.iter().filter(|made| made.service == index).peekable();
        if own.peek().is_none() {
            continue;
        }
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(
            out,
            "{comma}{{\"resource\":{{\"attributes\":[{{\"key\":\"service.name\",\"value\":{{\"stringValue\":\"{service}\"}}}}]}},\"scopeSpans\":[{{\"scope\":{{\"name\":\"bench\"}},\"spans\":["
        )?;
        for (position, made) in own.enumerate() {
            let comma = if position == 0 { "" } else { "," };
            let Made { trace, id, parent, start, end, operation, number, .. } = made;
            let parent = if *parent == 0 { String::new() } else { format!(",\"parentSpanId\":\"{parent:016x}\"") };
            write!(
                out,
                "{comma}{{\"traceId\":\"{trace:032x}\",\"spanId\":\"{id:016x}\"{parent},\"name\":\"{}\",\"kind\":{},\"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":[{{\"key\":\"thread.id\",\"value\":{{\"intValue\":\"{}\"}}}},{{\"key\":\"rpc.method\",\"value\":{{\"stringValue\":\"{}\"}}}},{{\"key\":\"code.namespace\",\"value\":{{\"stringValue\":\"longpole::bench::step\"}}}},{{\"key\":\"item.number\",\"value\":{{\"intValue\":\"{number}\"}}}},{{\"key\":\"cache.hit\",\"value\":{{\"boolValue\":{}}}}}],\"status\":{{}}}}",
                OPERATIONS[*operation],
                1 + number % 5,
                1_000 + number % 16,
                OPERATIONS[(*operation + 1) % OPERATIONS.len()],
                number % 2 == 0,
            )?;
        }
        write!(out, "]}}]}}")?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

// AppDash's gob stream, by the recipe of encoding/gob: type definitions, then one value of two maps.

fn put_uint(out: &mut Vec<u8>, number: u64) {
    if number < 0x80 {
        out.push(number as u8);
        return;
    }
    let bytes = number.to_be_bytes();
    let significant = &bytes[number.leading_zeros() as usize / 8..];
    out.push(0u8.wrapping_sub(significant.len() as u8));
    out.extend(significant);
}

fn put_int(out: &mut Vec<u8>, number: i64) {
    put_uint(out, if number < 0 { (!number as u64) << 1 | 1 } else { (number as u64) << 1 });
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_uint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// What a type is made of.
enum Definition {
    Struct(&'static [(&'static str, i64)]),
    Slice(i64),
    Map(i64, i64),
}

const UINT: i64 = 3;
const BYTES: i64 = 5;
const STRING: i64 = 6;

/// The types of a file, in the order and with the ids that Go gives them.
const TYPES: &[(i64, &str, Definition)] = &[
    (64, "memoryStoreData", Definition::Struct(&[("Trace", 71), ("Span", 72)])),
    (71, "", Definition::Map(UINT, 65)),
    (65, "", Definition::Struct(&[("Span", 66), ("Sub", 70)])),
    (66, "Span", Definition::Struct(&[("ID", 67), ("Annotations", 69)])),
    (67, "SpanID", Definition::Struct(&[("Trace", UINT), ("Span", UINT), ("Parent", UINT)])),
    (69, "Annotations", Definition::Slice(68)),
    (68, "Annotation", Definition::Struct(&[("Key", STRING), ("Value", BYTES)])),
    (70, "[]*appdash.Trace", Definition::Slice(65)),
    (72, "", Definition::Map(UINT, 71)),
];

fn put_type(out: &mut Vec<u8>, (id, name, definition): &(i64, &str, Definition)) {
    let mut message = Vec::new();
    put_int(&mut message, -id);
    // The field of `wireType`: 1 SliceT, 2 StructT, 3 MapT, each as the distance to the field before, which is -1.
    message.push(match definition {
        Definition::Slice(_) => 2,
        Definition::Struct(_) => 3,
        Definition::Map(..) => 4,
    });
    message.push(1);
    if name.is_empty() {
        message.push(2);
    } else {
        message.push(1);
        put_text(&mut message, name);
        message.push(1);
    }
    put_int(&mut message, *id);
    message.push(0);
    match definition {
        Definition::Slice(element) => {
            message.push(1);
            put_int(&mut message, *element);
        }
        Definition::Map(key, element) => {
            message.push(1);
            put_int(&mut message, *key);
            message.push(1);
            put_int(&mut message, *element);
        }
        Definition::Struct(fields) => {
            message.push(1);
            put_uint(&mut message, fields.len() as u64);
            for (name, id) in *fields {
                message.push(1);
                put_text(&mut message, name);
                message.push(1);
                put_int(&mut message, *id);
                message.push(0);
            }
        }
    }
    message.extend([0, 0]);
    put_uint(out, message.len() as u64);
    out.extend(message);
}

/// `2026-01-01T00:00:00.000051Z`, for the one day that spans lie in.
fn rfc3339(unix_nano: u64) -> String {
    let since = unix_nano - ORIGIN_UNIX_NANO;
    let (secs, nanos) = (since / 1_000_000_000, since % 1_000_000_000);
    format!("2026-01-{:02}T{:02}:{:02}:{:02}.{nanos:09}Z", 1 + secs / 86_400, secs / 3_600 % 24, secs / 60 % 60, secs % 60)
}

/// The struct `Span`: id and annotations.
fn put_span(out: &mut Vec<u8>, made: &Made) {
    let name = format!("/pulumirpc.Bench/{}", OPERATIONS[made.operation]);
    let urn = format!("urn:pulumi:dev::bench::bench:index:Step::step-{}", made.number);
    let payload = format!(
        "{{\"gRPC request\":\"urn:\\\"{urn}\\\" properties:{{{}}}\"}}",
        "x".repeat(PAYLOAD_BYTES - 2 * urn.len().min(PAYLOAD_BYTES / 2))
    );
    let (start, end) = (rfc3339(made.start), rfc3339(made.end));
    let annotations: [(&str, &str); 11] = [
        ("Name", &name),
        ("_schema:name", ""),
        ("component", "gRPC"),
        ("span.kind", if made.number.is_multiple_of(2) { "client" } else { "server" }),
        ("pulumi-decorator", "bench:index:Step"),
        ("Msg", &payload),
        ("Time", &start),
        ("_schema:log", ""),
        ("Span.Start", &start),
        ("Span.End", &end),
        ("_schema:Timespan", ""),
    ];
    out.push(1);
    for (field, id) in [made.trace, made.id, made.parent].into_iter().enumerate() {
        // A zero is left out, and only the last can be one.
        if id != 0 {
            out.push(1);
            put_uint(out, id);
        } else {
            debug_assert_eq!(field, 2);
        }
    }
    out.push(0);
    out.push(1);
    put_uint(out, annotations.len() as u64);
    for (key, value) in annotations {
        out.push(1);
        put_text(out, key);
        if !value.is_empty() {
            out.push(1);
            put_text(out, value);
        }
        out.push(0);
    }
    out.push(0);
}

/// A whole tree while its children come in: they end before it does.
struct Tree {
    made: Made,
    children: u64,
    bytes: Vec<u8>,
}

fn up_trace(spans: usize, shape: Shape, seed: u64, out: &mut dyn Write) -> Result<()> {
    ensure!(shape != Shape::Deep, "a chain of {DEEP_LEVELS} spans would stand in an up.trace {DEEP_LEVELS} times");
    let mut waiting: Vec<Tree> = Vec::new();
    let mut roots: Vec<(u64, Vec<u8>)> = Vec::new();
    // Trace id, span id, subtree: the second map.
    let mut subtrees: Vec<(u64, u64, Vec<u8>)> = Vec::new();
    make(spans, shape, seed, &mut |made| {
        // Children stand right before their parent.
        let mut tree = Tree { made, children: 0, bytes: Vec::new() };
        let first = waiting.iter().rposition(|other| other.made.parent != tree.made.id).map_or(0, |last| last + 1);
        for child in waiting.drain(first..) {
            tree.children += 1;
            tree.bytes.extend(whole(&child));
        }
        let bytes = whole(&tree);
        subtrees.push((tree.made.trace, tree.made.id, bytes.clone()));
        if tree.made.parent == 0 {
            roots.push((tree.made.trace, bytes));
        } else {
            waiting.push(tree);
        }
        Ok(())
    })?;

    let mut head = Vec::new();
    TYPES.iter().for_each(|definition| put_type(&mut head, definition));
    let mut value = Vec::new();
    put_int(&mut value, TYPES[0].0);
    value.push(1);
    put_uint(&mut value, roots.len() as u64);
    for (trace, bytes) in &roots {
        put_uint(&mut value, *trace);
        value.extend(bytes);
    }
    value.push(1);
    put_uint(&mut value, roots.len() as u64);
    for (trace, _) in &roots {
        let own: Vec<_> = subtrees.iter().filter(|(of, ..)| of == trace).collect();
        put_uint(&mut value, *trace);
        put_uint(&mut value, own.len() as u64);
        for (_, id, bytes) in own {
            put_uint(&mut value, *id);
            value.extend(bytes);
        }
    }
    value.push(0);
    put_uint(&mut head, value.len() as u64);
    out.write_all(&head)?;
    out.write_all(&value)?;
    Ok(())
}

/// The struct `Trace`: span and subtrees.
fn whole(tree: &Tree) -> Vec<u8> {
    let mut out = vec![1];
    put_span(&mut out, &tree.made);
    if tree.children > 0 {
        out.push(1);
        put_uint(&mut out, tree.children);
        out.extend(&tree.bytes);
    }
    out.push(0);
    out
}
