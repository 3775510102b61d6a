//! The spans that servers are measured with, the same for the same seed, as bodies of OTLP protobuf and of Zipkin's JSON.
//!
//! | set | what it is |
//! |---|---|
//! | uniform | traces of ten spans of one service, of ten services; each span has 11 of 97 attributes, each with one of 1,000 values |
//! | realistic | a shop of nine services with three instances each: semantic conventions, calls and queries, 1 to some 60 spans a trace, errors, events |
//!
//! A body has the spans of one instance of a service, 512 of them: what a batch processor sends. The spans of a trace of several services come in several
//! bodies. The bytes are made here and not by longpole's own encoder.

use std::fmt::Write;

use longpole_testing::random::Random;

/// Spans of a body: the default of batch processors.
const BODY_SPANS: usize = 512;

/// Spans of a trace of the uniform set, its services, and the attributes of a span.
const UNIFORM_SPANS: usize = 10;
const UNIFORM_SERVICES: usize = 10;
const UNIFORM_ATTRIBUTES: usize = 11;
const UNIFORM_KEYS: usize = 97;
const UNIFORM_VALUES: usize = 1_000;

/// Instances of each service of the realistic set.
const INSTANCES: usize = 3;

/// Its users: one of them is in some ten traces of a million spans.
const USERS: usize = 5_000;

/// One request in this many fails.
const FAILS_ONE_IN: usize = 50;

/// Time between the starts of two traces: a million spans of the uniform set take 17 minutes.
const BETWEEN_TRACES_NANOS: u64 = 10_000_000;

const STACK: &str = "java.net.SocketTimeoutException: Read timed out\n\tat shop.payment.Bank.charge(Bank.java:118)\n\tat shop.payment.Handler.handle(Handler.java:42)\n\tat shop.http.Server.serve(Server.java:211)\n\tat java.base/java.lang.Thread.run(Thread.java:1583)";

/// Which spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataSet {
    Uniform,
    Realistic,
}

impl DataSet {
    pub(super) fn name(self) -> &'static str {
        match self {
            DataSet::Uniform => "uniform",
            DataSet::Realistic => "realistic",
        }
    }

    /// A service and an attribute of its spans that few spans have.
    pub(super) fn few(self) -> (&'static str, &'static str, &'static str) {
        match self {
            DataSet::Uniform => ("service-03", "attribute.key.40", "value-500"),
            DataSet::Realistic => ("checkout", "user.id", "user-777"),
        }
    }

    /// A service and an attribute of its spans that more spans have than a search returns.
    pub(super) fn many(self) -> Option<(&'static str, &'static str, &'static str)> {
        match self {
            DataSet::Uniform => None,
            DataSet::Realistic => Some(("payment", "error.type", "timeout")),
        }
    }
}

/// The format of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Otlp,
    ZipkinJson,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Otlp => "application/x-protobuf",
            Format::ZipkinJson => "application/json",
        }
    }
}

/// A request, and how many spans it has.
#[derive(Debug, Clone)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) spans: usize,
}

/// A trace that was sent, to look for.
#[derive(Debug, Clone)]
pub(super) struct SentTrace {
    /// As 32 digits.
    pub(super) id: String,
    pub(super) spans: usize,
    /// Service of its root.
    pub(super) service: String,
    /// Start of its root, in Unix nanoseconds.
    pub(super) start: u64,
}

/// Makes spans without end.
#[derive(Debug)]
pub(super) struct Generator {
    set: DataSet,
    format: Format,
    random: Random,
    /// Start of the next trace, in Unix nanoseconds.
    now: u64,
    /// Spans that wait for their body, by service and instance.
    waiting: Vec<Emitter>,
    /// Spans of the realistic trace, while it is made.
    trace: Vec<(usize, Span)>,
}

/// One instance of a service.
#[derive(Debug)]
struct Emitter {
    service: String,
    resource: Vec<(&'static str, Value)>,
    spans: Vec<u8>,
    count: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Text(String),
    Int(i64),
    Bool(bool),
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[derive(Debug)]
struct Span {
    trace: u128,
    id: u64,
    parent: u64,
    name: String,
    /// OTLP's number: 1 internal, 2 server, 3 client, 4 producer, 5 consumer.
    kind: u8,
    start: u64,
    end: u64,
    failed: bool,
    attributes: Vec<(String, Value)>,
    events: Vec<Event>,
}

#[derive(Debug)]
struct Event {
    /// In Unix nanoseconds.
    time: u64,
    name: &'static str,
    attributes: Vec<(&'static str, Value)>,
}

impl Generator {
    /// Traces start at this time, in Unix nanoseconds.
    pub(super) fn new(set: DataSet, format: Format, seed: u64, start: u64) -> Generator {
        let mut random = Random(seed);
        let waiting = match set {
            DataSet::Uniform => {
                (0..UNIFORM_SERVICES).map(|number| Emitter::new(&format!("service-{number:02}"), 0, &mut random, false)).collect()
            }
            DataSet::Realistic => SERVICES
                .iter()
                .flat_map(|service| (0..INSTANCES).map(move |instance| (service, instance)))
                .map(|(service, instance)| Emitter::new(service.name, instance, &mut random, true))
                .collect(),
        };
        Generator { set, format, random, now: start, waiting, trace: Vec::new() }
    }

    /// Bodies with at least this many spans, and one trace in a hundred of theirs. Each trace is whole.
    pub(super) fn bodies(&mut self, spans: usize) -> (Vec<Body>, Vec<SentTrace>) {
        let (mut bodies, mut traces, mut made, mut number) = (Vec::with_capacity(spans / BODY_SPANS + 64), Vec::new(), 0, 0);
        while made < spans {
            let sent = self.trace(&mut bodies);
            made += sent.spans;
            if number % 100 == 7 {
                traces.push(sent);
            }
            number += 1;
        }
        for emitter in &mut self.waiting {
            bodies.extend(emitter.body(self.format));
        }
        (bodies, traces)
    }

    /// One trace in bodies of its own.
    pub(super) fn one_trace(&mut self) -> (Vec<Body>, SentTrace) {
        let mut bodies = Vec::new();
        let sent = self.trace(&mut bodies);
        for emitter in &mut self.waiting {
            bodies.extend(emitter.body(self.format));
        }
        (bodies, sent)
    }

    fn trace(&mut self, bodies: &mut Vec<Body>) -> SentTrace {
        let trace = u128::from(self.random.next()) << 64 | u128::from(self.random.next());
        self.now += BETWEEN_TRACES_NANOS;
        let spans = match self.set {
            DataSet::Uniform => self.uniform(trace),
            DataSet::Realistic => {
                let user = format!("user-{}", self.random.below(USERS));
                let mut end = self.now;
                self.realistic(trace, 0, FRONTEND, &user, &mut end);
                std::mem::take(&mut self.trace)
            }
        };
        let count = spans.len();
        let root = spans.iter().find(|(_, span)| span.parent == 0).map_or(0, |(emitter, _)| *emitter);
        let service = self.waiting[root].service.clone();
        for (emitter, span) in spans {
            let emitter = &mut self.waiting[emitter];
            match self.format {
                Format::Otlp => put_message(&mut emitter.spans, 2, &otlp_span(&span)),
                Format::ZipkinJson => {
                    emitter.spans.push(if emitter.count == 0 { b'[' } else { b',' });
                    emitter.spans.extend(zipkin_span(&span, &emitter.service, &emitter.resource).as_bytes());
                }
            }
            emitter.count += 1;
            if emitter.count >= BODY_SPANS {
                bodies.extend(emitter.body(self.format));
            }
        }
        SentTrace { id: format!("{trace:032x}"), spans: count, service, start: self.now }
    }

    fn uniform(&mut self, trace: u128) -> Vec<(usize, Span)> {
        let service = self.random.below(UNIFORM_SERVICES);
        let root = self.id();
        (0..UNIFORM_SPANS)
            .map(|number| {
                let first_key = self.random.below(UNIFORM_KEYS);
                let attributes = (0..UNIFORM_ATTRIBUTES)
                    .map(|place| {
                        // Keys of one span differ: 13 steps of a circle of 97.
                        let key = (first_key + place * 13) % UNIFORM_KEYS;
                        (format!("attribute.key.{key:02}"), Value::Text(format!("value-{}", self.random.below(UNIFORM_VALUES))))
                    })
                    .collect();
                let start = self.now + number as u64 * 100_000;
                let end = if number == 0 { self.now + 3_000_000 } else { start + 50_000 + self.random.below(1_000_000) as u64 };
                let (id, parent) = if number == 0 { (root, 0) } else { (self.id(), root) };
                let name = if number == 0 { "root".to_owned() } else { format!("step-{number:02}") };
                let kind = if number == 0 { 2 } else { 3 };
                (service, Span { trace, id, parent, name, kind, start, end, failed: false, attributes, events: Vec::new() })
            })
            .collect()
    }

    fn id(&mut self) -> u64 {
        self.random.next() | 1
    }

    /// A request that a service serves, with all below it; `now` is its start, and its end afterwards. Services do not call themselves, so the depth is small.
    fn realistic(&mut self, trace: u128, parent: u64, service: usize, user: &str, now: &mut u64) -> bool {
        let emitter = service * INSTANCES + self.random.below(INSTANCES);
        let it = &SERVICES[service];
        let (id, start) = (self.id(), *now);
        *now += 50_000 + self.random.below(400_000) as u64;
        let route = it.routes[self.random.below(it.routes.len())];
        let item = self.random.below(5_000);
        let mut failed = self.random.one_in(FAILS_ONE_IN) && it.queries.is_empty();
        let mut queries = 0;
        if !it.queries.is_empty() {
            queries = 1 + self.random.below(3);
        }
        for _ in 0..queries {
            let (system, query) = it.queries[self.random.below(it.queries.len())];
            let (begin, query_id) = (*now, self.id());
            *now += 200_000 + self.random.below(3_000_000) as u64;
            let verb = query.split(' ').next().unwrap_or_default();
            let attributes = vec![
                ("db.system.name".to_owned(), text(system)),
                ("db.namespace".to_owned(), text("shop")),
                ("db.operation.name".to_owned(), text(verb)),
                ("db.query.text".to_owned(), text(query)),
                ("server.address".to_owned(), text("db.shop.internal")),
                ("server.port".to_owned(), Value::Int(5432)),
                ("network.peer.address".to_owned(), Value::Text(format!("10.4.0.{}", self.random.below(8)))),
                ("thread.id".to_owned(), Value::Int(20 + self.random.below(16) as i64)),
            ];
            let name = format!("{verb} shop");
            let events = Vec::new();
            let span = Span { trace, id: query_id, parent: id, name, kind: 3, start: begin, end: *now, failed: false, attributes, events };
            self.trace.push((emitter, span));
        }
        for callee in it.calls {
            if self.random.below(100) >= callee.percent {
                continue;
            }
            for _ in 0..1 + self.random.below(callee.times_max) {
                let (begin, call_id) = (*now, self.id());
                *now += 30_000 + self.random.below(200_000) as u64;
                let fails = self.realistic(trace, call_id, callee.service, user, now);
                *now += 30_000 + self.random.below(200_000) as u64;
                let other = SERVICES[callee.service].name;
                let attributes = vec![
                    ("rpc.system".to_owned(), text("grpc")),
                    ("rpc.service".to_owned(), Value::Text(format!("shop.{other}"))),
                    ("rpc.method".to_owned(), text(SERVICES[callee.service].routes[0])),
                    ("rpc.grpc.status_code".to_owned(), Value::Int(if fails { 4 } else { 0 })),
                    ("server.address".to_owned(), Value::Text(format!("{other}.shop.svc"))),
                    ("server.port".to_owned(), Value::Int(8080)),
                    ("network.peer.address".to_owned(), Value::Text(format!("10.4.1.{}", self.random.below(27)))),
                    ("thread.id".to_owned(), Value::Int(20 + self.random.below(16) as i64)),
                ];
                let name = format!("shop.{other}/call");
                let events = Vec::new();
                let span =
                    Span { trace, id: call_id, parent: id, name, kind: 3, start: begin, end: *now, failed: fails, attributes, events };
                self.trace.push((emitter, span));
                failed |= fails && self.random.one_in(2);
            }
        }
        *now += 20_000 + self.random.below(300_000) as u64;
        let mut attributes = vec![
            ("http.request.method".to_owned(), text(if item.is_multiple_of(3) { "POST" } else { "GET" })),
            ("http.route".to_owned(), text(route)),
            ("url.path".to_owned(), Value::Text(route.replace("{id}", &item.to_string()))),
            ("url.scheme".to_owned(), text("http")),
            ("http.response.status_code".to_owned(), Value::Int(if failed { 503 } else { 200 })),
            ("server.address".to_owned(), Value::Text(format!("{}.shop.svc", it.name))),
            ("server.port".to_owned(), Value::Int(8080)),
            ("client.address".to_owned(), Value::Text(format!("10.{}.{}.{}", item % 4, item % 250, item % 200))),
            ("user_agent.original".to_owned(), text(AGENTS[item % AGENTS.len()])),
            ("user.id".to_owned(), text(user)),
            ("thread.id".to_owned(), Value::Int(20 + self.random.below(16) as i64)),
            ("feature.new_cart".to_owned(), Value::Bool(item.is_multiple_of(2))),
        ];
        let mut events = Vec::new();
        if failed {
            attributes.push(("error.type".to_owned(), text("timeout")));
            let attributes = vec![
                ("exception.type", text("java.net.SocketTimeoutException")),
                ("exception.message", Value::Text(format!("no answer for {route} within 2 s"))),
                ("exception.stacktrace", text(STACK)),
            ];
            events.push(Event { time: *now - 10_000, name: "exception", attributes });
        } else if self.random.one_in(20) {
            let attributes = vec![("cache.key", Value::Text(format!("item:{item}")))];
            events.push(Event { time: *now - 10_000, name: "cache.miss", attributes });
        }
        let name = format!("GET {route}");
        self.trace.push((emitter, Span { trace, id, parent, name, kind: 2, start, end: *now, failed, attributes, events }));
        failed
    }
}

/// A service of the shop, what it calls and which statements it sends.
struct Service {
    name: &'static str,
    routes: &'static [&'static str],
    calls: &'static [Call],
    queries: &'static [(&'static str, &'static str)],
}

struct Call {
    service: usize,
    percent: usize,
    times_max: usize,
}

const FRONTEND: usize = 0;

const SERVICES: [Service; 9] = [
    Service {
        name: "frontend",
        routes: &["/", "/cart/{id}", "/products/{id}", "/orders/{id}"],
        calls: &[
            Call { service: 1, percent: 70, times_max: 1 },
            Call { service: 2, percent: 60, times_max: 3 },
            Call { service: 6, percent: 40, times_max: 1 },
        ],
        queries: &[],
    },
    Service {
        name: "checkout",
        routes: &["/checkout/{id}", "/checkout"],
        calls: &[
            Call { service: 3, percent: 90, times_max: 1 },
            Call { service: 4, percent: 80, times_max: 1 },
            Call { service: 5, percent: 80, times_max: 2 },
            Call { service: 8, percent: 50, times_max: 1 },
        ],
        queries: &[],
    },
    Service {
        name: "catalog",
        routes: &["/items/{id}", "/items"],
        calls: &[Call { service: 5, percent: 20, times_max: 1 }],
        queries: &[
            ("postgresql", "SELECT id, title, price, stock FROM items WHERE id = $1"),
            ("postgresql", "SELECT id, title FROM items WHERE category = $1 ORDER BY rank LIMIT 50"),
        ],
    },
    Service {
        name: "cart",
        routes: &["/carts/{id}"],
        calls: &[],
        queries: &[("redis", "HGETALL cart"), ("redis", "HSET cart item count"), ("redis", "EXPIRE cart 3600")],
    },
    Service {
        name: "payment",
        routes: &["/charge", "/refund/{id}"],
        calls: &[Call { service: 7, percent: 60, times_max: 1 }],
        queries: &[],
    },
    Service {
        name: "inventory",
        routes: &["/stock/{id}"],
        calls: &[],
        queries: &[
            ("postgresql", "SELECT warehouse, count FROM stock WHERE item = $1 AND count > 0 ORDER BY distance"),
            ("postgresql", "UPDATE stock SET count = count - $1 WHERE item = $2 AND warehouse = $3"),
        ],
    },
    Service { name: "recommendation", routes: &["/for/{id}"], calls: &[Call { service: 2, percent: 80, times_max: 2 }], queries: &[] },
    Service { name: "fraud", routes: &["/score"], calls: &[], queries: &[("postgresql", "SELECT score FROM fraud WHERE account = $1")] },
    Service { name: "mail", routes: &["/send"], calls: &[], queries: &[] },
];

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
    "okhttp/4.12.0",
    "grpc-java-netty/1.70.0",
];

impl Emitter {
    fn new(service: &str, instance: usize, random: &mut Random, has_pod: bool) -> Emitter {
        let mut resource = vec![
            ("service.name", text(service)),
            ("telemetry.sdk.name", text("opentelemetry")),
            ("telemetry.sdk.language", text("java")),
            ("telemetry.sdk.version", text("1.50.0")),
        ];
        if has_pod {
            let pod = format!("{service}-{:08x}-{instance}", random.next() as u32);
            resource.extend([
                ("service.version", text("2026.11.3")),
                ("service.instance.id", text(&pod)),
                ("k8s.pod.name", text(&pod)),
                ("host.name", Value::Text(format!("node-{}", random.below(6)))),
                ("process.pid", Value::Int(1 + random.below(30_000) as i64)),
            ]);
        }
        Emitter { service: service.to_owned(), resource, spans: Vec::new(), count: 0 }
    }

    /// What waits, if something does.
    fn body(&mut self, format: Format) -> Option<Body> {
        let spans = std::mem::take(&mut self.count);
        if spans == 0 {
            return None;
        }
        let mut own = std::mem::take(&mut self.spans);
        let bytes = match format {
            Format::ZipkinJson => {
                own.push(b']');
                own
            }
            Format::Otlp => {
                let mut resource = Vec::new();
                for (key, value) in &self.resource {
                    put_message(&mut resource, 1, &otlp_attribute(key, value));
                }
                let mut scope = Vec::new();
                put_text(&mut scope, 1, "longpole-bench");
                put_text(&mut scope, 2, "1.0.0");
                let mut of_scope = Vec::with_capacity(own.len() + 64);
                put_message(&mut of_scope, 1, &scope);
                of_scope.append(&mut own);
                let mut of_resource = Vec::with_capacity(of_scope.len() + 512);
                put_message(&mut of_resource, 1, &resource);
                put_message(&mut of_resource, 2, &of_scope);
                let mut bytes = Vec::with_capacity(of_resource.len() + 8);
                put_message(&mut bytes, 1, &of_resource);
                bytes
            }
        };
        Some(Body { bytes, spans })
    }
}

// Protobuf, by its encoding guide: a field is its number and wire type, then a varint, eight bytes, or a length and bytes.

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_number(out: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(out, field << 3);
    put_varint(out, number);
}

fn put_fixed64(out: &mut Vec<u8>, field: u64, number: u64) {
    put_varint(out, field << 3 | 1);
    out.extend(number.to_le_bytes());
}

fn put_message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend(bytes);
}

fn put_text(out: &mut Vec<u8>, field: u64, text: &str) {
    put_message(out, field, text.as_bytes());
}

/// OTLP's `KeyValue`.
fn otlp_attribute(key: &str, value: &Value) -> Vec<u8> {
    let (mut any, mut out) = (Vec::with_capacity(32), Vec::with_capacity(64));
    match value {
        Value::Text(text) => put_text(&mut any, 1, text),
        Value::Bool(value) => put_number(&mut any, 2, u64::from(*value)),
        Value::Int(value) => put_number(&mut any, 3, *value as u64),
    }
    put_text(&mut out, 1, key);
    put_message(&mut out, 2, &any);
    out
}

fn otlp_span(span: &Span) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    put_message(&mut out, 1, &span.trace.to_be_bytes());
    put_message(&mut out, 2, &span.id.to_be_bytes());
    if span.parent != 0 {
        put_message(&mut out, 4, &span.parent.to_be_bytes());
    }
    put_text(&mut out, 5, &span.name);
    put_number(&mut out, 6, u64::from(span.kind));
    put_fixed64(&mut out, 7, span.start);
    put_fixed64(&mut out, 8, span.end);
    for (key, value) in &span.attributes {
        put_message(&mut out, 9, &otlp_attribute(key, value));
    }
    for Event { time, name, attributes } in &span.events {
        let mut event = Vec::new();
        put_fixed64(&mut event, 1, *time);
        put_text(&mut event, 2, name);
        for (key, value) in attributes {
            put_message(&mut event, 3, &otlp_attribute(key, value));
        }
        put_message(&mut out, 11, &event);
    }
    // `Status`, empty if nothing failed.
    let mut status = Vec::new();
    if span.failed {
        put_text(&mut status, 2, "no answer within 2 s");
        put_number(&mut status, 3, 2);
    }
    put_message(&mut out, 15, &status);
    out
}

/// Zipkin's span, with the resource as tags: what the Collector's exporter makes of it.
fn zipkin_span(span: &Span, service: &str, resource: &[(&'static str, Value)]) -> String {
    let mut out = String::with_capacity(1_024);
    // Writing to a text does not fail.
    let _ = write!(out, "{{\"traceId\":\"{:032x}\",\"id\":\"{:016x}\"", span.trace, span.id);
    if span.parent != 0 {
        let _ = write!(out, ",\"parentId\":\"{:016x}\"", span.parent);
    }
    let kind = [None, None, Some("SERVER"), Some("CLIENT"), Some("PRODUCER"), Some("CONSUMER")][usize::from(span.kind)];
    if let Some(kind) = kind {
        let _ = write!(out, ",\"kind\":\"{kind}\"");
    }
    let (start, micros) = (span.start / 1_000, ((span.end - span.start) / 1_000).max(1));
    let name = serde_json::Value::from(span.name.as_str());
    let _ = write!(out, ",\"name\":{name},\"timestamp\":{start},\"duration\":{micros},\"localEndpoint\":{{\"serviceName\":\"{service}\"}}");
    let mut separator = ",\"annotations\":[";
    for Event { time, name, .. } in &span.events {
        let _ = write!(out, "{separator}{{\"timestamp\":{},\"value\":\"{name}\"}}", time / 1_000);
        separator = ",";
    }
    if !span.events.is_empty() {
        out.push(']');
    }
    let mut separator = ",\"tags\":{";
    let own = span.attributes.iter().map(|(key, value)| (key.as_str(), value));
    let of_resource = resource.iter().filter(|(key, _)| *key != "service.name").map(|(key, value)| (*key, value));
    for (key, value) in own.chain(of_resource) {
        let value = match value {
            Value::Text(text) => text.clone(),
            Value::Int(number) => number.to_string(),
            Value::Bool(value) => value.to_string(),
        };
        let _ = write!(out, "{separator}\"{key}\":{}", serde_json::Value::from(value));
        separator = ",";
    }
    if span.failed {
        out.push_str(",\"error\":\"no answer within 2 s\"");
    }
    out.push_str("}}");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_bodies() {
        for set in [DataSet::Uniform, DataSet::Realistic] {
            let bodies =
                |seed| Generator::new(set, Format::Otlp, seed, 1).bodies(2_000).0.into_iter().map(|body| body.bytes).collect::<Vec<_>>();
            assert_eq!(bodies(1), bodies(1));
            assert_ne!(bodies(1), bodies(2));
        }
    }

    #[test]
    fn traces_of_the_shop_have_up_to_60_spans() {
        let mut generator = Generator::new(DataSet::Realistic, Format::Otlp, 1, 1);
        let mut sizes: Vec<usize> = (0..10_000).map(|_| generator.one_trace().1.spans).collect();
        sizes.sort_unstable();
        assert_eq!((sizes[0], sizes[5_000], sizes[9_999]), (1, 20, 60));
    }

    #[test]
    fn zipkin_bodies_are_json_with_all_spans() {
        for set in [DataSet::Uniform, DataSet::Realistic] {
            let (bodies, _) = Generator::new(set, Format::ZipkinJson, 1, 1_000_000).bodies(3_000);
            let spans: usize = bodies.iter().map(|body| body.spans).sum();
            let read = bodies.iter().map(|body| serde_json::from_slice::<Vec<serde_json::Value>>(&body.bytes).expect("a list").len());
            assert_eq!(read.sum::<usize>(), spans);
        }
    }
}
