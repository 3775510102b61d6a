//! Every kind of credential in every place a text can stand, and ordinary texts, which stay.

#![allow(clippy::print_stdout, reason = "how many came through, and how many false positives there are")]

use std::collections::BTreeSet;
use std::sync::Arc;

use longpole_model::sink::{EventRef, LinkRef, SpanRef, ValueRef};
use longpole_model::{
    Attribute, AttributeValue, Attributes, Resource, Scope, Span, SpanEvent, SpanId, SpanKind, SpanLink, StatusCode, TimeRange, Timestamp,
    TraceId,
};
use longpole_wire::redact::field_rules::{FIELD_RULES, FieldRule};
use longpole_wire::redact::{REDACTED, Redactor};

const CREDENTIALS: &str = include_str!("redaction/credentials.txt");
const ORDINARY: &str = include_str!("redaction/ordinary.txt");

/// With which the ordinary command lines begin: they are tried as words, too.
const COMMANDS: &[&str] = &[
    "docker",
    "ssh",
    "mkdir",
    "cp",
    "mysql",
    "psql",
    "curl",
    "tar",
    "kubectl",
    "vault",
    "git",
    "cargo",
    "npm",
    "pulumi",
    "terraform",
    "openssl",
    "make",
    "python3",
    "mysqladmin",
    "sqlplus",
    "htpasswd",
    "xfreerdp",
    "plink",
    "http",
    "aws",
    "az",
    "acl",
    "mysqlsh",
    "etcdctl",
    "gh",
    "bundle",
    "poetry",
    "composer",
    "nmcli",
    "rclone",
    "virsh",
    "security",
    "cvs",
    "fly",
    "p4",
];

/// A credential with the text around it.
struct Kind {
    name: &'static str,
    text: String,
    /// What may not stay.
    secrets: Vec<String>,
    is_command: bool,
}

/// Letters made from the name of a kind: the same each time, and nobody's.
struct Letters(u64);

impl Letters {
    fn of(name: &str) -> Self {
        Letters(name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)))
    }

    fn take(&mut self, alphabet: &[u8], count: usize) -> String {
        let mut next = || {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            char::from(alphabet[(self.0 >> 33) as usize % alphabet.len()])
        };
        (0..count).map(|_| next()).collect()
    }
}

const DIGITS: &[u8] = b"0123456789";
const HEX: &[u8] = b"0123456789abcdef";
const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn kinds() -> Vec<Kind> {
    let lines = CREDENTIALS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let (name, text) = line.split_once('\t').expect("a kind has a name, a tab and a text");
            kind(name, text)
        })
        .collect()
}

fn kind(name: &'static str, template: &str) -> Kind {
    let mut letters = Letters::of(name);
    let (mut text, mut secrets) = (String::new(), Vec::new());
    let is_command = template.starts_with("$ ");
    let mut rest = template.strip_prefix("$ ").unwrap_or(template);
    while let Some(open) = rest.find(['{', '\\']) {
        text.push_str(&rest[..open]);
        rest = &rest[open..];
        if let Some(behind) = rest.strip_prefix("\\n") {
            text.push('\n');
            rest = behind;
            continue;
        }
        let control = [("\\e", '\x1b'), ("\\r", '\r'), ("\\t", '\t')].into_iter().find(|(escape, _)| rest.starts_with(escape));
        if let Some((escape, control)) = control {
            text.push(control);
            rest = &rest[escape.len()..];
            continue;
        }
        if let Some(behind) = rest.strip_prefix("\\\\") {
            text.push('\\');
            rest = behind;
            continue;
        }
        if let Some(behind) = rest.strip_prefix("\\\"") {
            text.push_str("\\\"");
            rest = behind;
            continue;
        }
        let made = rest.find('}').and_then(|close| made(&rest[1..close], &mut letters).map(|secret| (secret, close)));
        match made {
            Some((secret, close)) => {
                text.push_str(&secret);
                secrets.push(secret);
                rest = &rest[close + 1..];
            }
            None => {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    Kind { name, text, secrets, is_command }
}

fn made(pattern: &str, letters: &mut Letters) -> Option<String> {
    match pattern {
        // As a person makes one: no key.
        "word" | "word2" => return Some(format!("Zq{}", letters.take(LOWER, 7))),
        "uuid" => return Some([8, 4, 4, 4, 12].map(|count| letters.take(HEX, count)).join("-")),
        // `user:password` whose base64 has no digit.
        "basic" => return Some("dXNlcjpwYXNz".to_owned()),
        _ => {}
    }
    let (alphabet, count) = pattern.split_once(':')?;
    let alphabet = match alphabet {
        "digits" => DIGITS,
        "hex" => HEX,
        "upper" => UPPER,
        "lower" => LOWER,
        "alnum" | "url" | "b64" => ALNUM,
        _ => return None,
    };
    Some(letters.take(alphabet, count.parse().ok()?))
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::Str(text.into())
}

fn one(key: &str, value: AttributeValue) -> Attributes {
    Attributes(vec![Attribute { key: key.into(), value }])
}

fn span() -> Span {
    let mut span = Span::new(TraceId::MAX, SpanId::MAX, "span", TimeRange { start: Timestamp(1), end: Timestamp(2) });
    span.resource = Arc::default();
    span
}

/// Ways to put a text into a place: the place of the table, and what a redactor leaves of it there.
type Put = fn(&mut Redactor, &str) -> String;

fn in_span(redactor: &mut Redactor, put: impl FnOnce(&mut Span)) -> String {
    let mut span = span();
    put(&mut span);
    let concerned = concerns(redactor, &span);
    let mut spans = [span];
    let taken = redactor.spans(&mut spans);
    // The check before a request is kept and the redaction then agree.
    assert_eq!(concerned, taken > 0, "{spans:?}");
    assert_eq!(redactor.spans(&mut spans), 0, "cleaned once and for all: {spans:?}");
    format!("{:?}", spans[0])
}

fn pairs(attributes: &Attributes) -> Vec<(&str, ValueRef<'_>)> {
    attributes.iter().map(|pair| (&*pair.key, (&pair.value).into())).collect()
}

fn concerns(redactor: &mut Redactor, span: &Span) -> bool {
    let attributes = pairs(&span.attributes);
    let events: Vec<EventRef<'_>> =
        span.events.iter().map(|event| EventRef { time: event.time, name: &event.name, attributes: pairs(&event.attributes) }).collect();
    let links: Vec<LinkRef<'_>> = span
        .links
        .iter()
        .map(|link| LinkRef { trace_id: link.trace_id, span_id: link.span_id, attributes: pairs(&link.attributes) })
        .collect();
    let lent = SpanRef {
        trace_id: span.trace_id,
        span_id: span.span_id,
        parent_span_id: None,
        trace_state: &span.trace_state,
        flags: 0,
        name: &span.name,
        kind: SpanKind::Internal,
        start: span.start,
        end: span.end,
        attributes: &attributes,
        dropped_attributes: 0,
        events: &events,
        dropped_events: 0,
        links: &links,
        dropped_links: 0,
        status: StatusCode::Error,
        status_message: &span.status.message,
    };
    redactor.concerns_span(&lent) || redactor.concerns_resource(&span.resource) || redactor.concerns_scope(&span.scope)
}

fn event(name: &str, attributes: Attributes) -> SpanEvent {
    SpanEvent { time: Timestamp(1), name: name.into(), attributes }
}

const PUTS: &[(&str, Put)] = &[
    ("name of a span", |r, t| in_span(r, |span| span.name = t.into())),
    ("status message", |r, t| in_span(r, |span| span.status.message = t.into())),
    ("tracestate", |r, t| in_span(r, |span| span.trace_state = t.into())),
    // A comma would part the member in two.
    ("tracestate", |r, t| in_span(r, |span| span.trace_state = format!("a=1,vendor={},b=2", if t.contains(',') { "x" } else { t }).into())),
    ("key of an attribute", |r, t| in_span(r, |span| span.attributes = one(t, AttributeValue::Int(1)))),
    ("value of an attribute", |r, t| in_span(r, |span| span.attributes = one("note", text(t)))),
    ("value in a list", |r, t| {
        in_span(r, |span| span.attributes = one("notes", AttributeValue::Array(vec![text("a"), text(t), text("b")].into())))
    }),
    ("key in a map", |r, t| {
        in_span(r, |span| span.attributes = one("notes", AttributeValue::KeyValues(one(t, AttributeValue::Bool(true)).0.into())))
    }),
    ("value in a map", |r, t| in_span(r, |span| span.attributes = one("notes", AttributeValue::KeyValues(one("note", text(t)).0.into())))),
    ("bytes", |r, t| {
        let mut bytes = Vec::new();
        let _agree = in_span(r, |span| span.attributes = one("raw", AttributeValue::Bytes(t.as_bytes().to_vec().into())));
        // Bytes that are no text around it; shown as text, which `{:?}` of bytes is not.
        bytes.extend(b"\xff\xfe \x00");
        bytes.extend(t.as_bytes());
        bytes.extend(b"\x00\xff");
        let mut attributes = one("raw", AttributeValue::Bytes(bytes.into()));
        r.attributes(&mut attributes);
        match &attributes.0[0].value {
            AttributeValue::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        }
    }),
    ("name of an event", |r, t| in_span(r, |span| span.events = vec![event(t, Attributes::default())].into())),
    ("attribute of an event", |r, t| in_span(r, |span| span.events = vec![event("e", one("note", text(t)))].into())),
    ("attribute of a link", |r, t| {
        in_span(r, |span| {
            span.links = vec![SpanLink { trace_id: TraceId::MAX, span_id: SpanId::MAX, attributes: one("note", text(t)) }].into()
        })
    }),
    ("attribute of a resource", |r, t| in_span(r, |span| span.resource = Arc::new(Resource { attributes: one("note", text(t)) }))),
    ("name of a scope", |r, t| in_span(r, |span| span.scope = Arc::new(Scope { name: t.to_owned(), ..Scope::default() }))),
    ("version of a scope", |r, t| in_span(r, |span| span.scope = Arc::new(Scope { version: t.to_owned(), ..Scope::default() }))),
    ("attribute of a scope", |r, t| {
        in_span(r, |span| span.scope = Arc::new(Scope { attributes: one("note", text(t)), ..Scope::default() }))
    }),
    ("body of a log record", |r, t| in_event(r, event("log", one("log.body", text(t))))),
    ("attribute of a log record", |r, t| in_event(r, event("log", one("note", text(t))))),
    ("label of a profile", in_attribute),
    ("type of a profile", in_string),
    ("command of the run", in_words),
    ("arguments of a process", in_words),
    ("name and program of a process", in_string),
    ("resource of a process", in_attribute),
    ("name of a thread", in_string),
];

fn in_event(redactor: &mut Redactor, mut event: SpanEvent) -> String {
    redactor.event(&mut event);
    format!("{event:?}")
}

fn in_attribute(redactor: &mut Redactor, value: &str) -> String {
    let mut attributes = one("note", text(value));
    redactor.attributes(&mut attributes);
    format!("{attributes:?}")
}

fn in_string(redactor: &mut Redactor, text: &str) -> String {
    let mut text = text.to_owned();
    redactor.string(&mut text);
    text
}

fn in_words(redactor: &mut Redactor, text: &str) -> String {
    let mut words = vec!["program".to_owned(), text.to_owned()];
    redactor.arguments(&mut words);
    words.join(" ")
}

/// The words of a command line, as a shell gives them to a program.
fn words_of(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c == ' ' => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn no_kind_of_credential_stays_in_any_place() {
    let kinds = kinds();
    assert!(kinds.len() >= 150, "{} kinds", kinds.len());
    assert_eq!(kinds.iter().map(|kind| kind.name).collect::<BTreeSet<_>>().len(), kinds.len(), "each kind once");
    let mut redactor = Redactor::default();
    let mut kept = Vec::new();
    let mut tried = 0;
    for Kind { name, text, secrets, is_command } in &kinds {
        assert!(!secrets.is_empty(), "{name}");
        let mut look = |place: &str, left: &str| {
            tried += 1;
            let shown: Vec<&String> = secrets.iter().filter(|secret| left.contains(*secret)).collect();
            if !shown.is_empty() {
                kept.push(format!("{name} in {place}: {text:?} -> {left:?}"));
            }
        };
        for (place, put) in PUTS {
            look(place, &put(&mut redactor, text));
        }
        if *is_command {
            let mut words = words_of(text);
            redactor.arguments(&mut words);
            look("words", &words.join(" "));
            let values: Vec<AttributeValue> = words_of(text).iter().map(|word| AttributeValue::Str(word.as_str().into())).collect();
            let mut attributes = one("process.command_args", AttributeValue::Array(values.into()));
            redactor.attributes(&mut attributes);
            look("process.command_args", &format!("{attributes:?}"));
            look("list of a shell", &in_string(&mut redactor, &format!("{:?}", words_of(text))));
        }
    }
    println!("{} kinds, {tried} places: {} stay", kinds.len(), kept.len());
    assert!(kept.is_empty(), "{} of {tried} stay:\n{}", kept.len(), kept.join("\n"));
}

#[test]
fn a_name_and_a_value_in_a_pair_belong_together() {
    let map = |pairs: &[(&str, AttributeValue)]| {
        let pairs = pairs.iter().map(|(key, value)| Attribute { key: (*key).into(), value: value.clone() });
        AttributeValue::KeyValues(pairs.collect::<Vec<_>>().into())
    };
    let list = |values: &[AttributeValue]| AttributeValue::Array(values.to_vec().into());
    let mut redactor = Redactor::default();
    let mut left = |value: AttributeValue| in_span(&mut redactor, |span| span.attributes = one("notes", value));
    for value in [
        map(&[("name", text("X-Api-Key")), ("value", text("hunter2"))]),
        map(&[("value", text("hunter2")), ("name", text("X-Api-Key"))]),
        list(&[map(&[("Key", text("DB_PASSWORD")), ("Value", text("hunter2"))]), map(&[("Key", text("A")), ("Value", text("b"))])]),
        map(&[("ParameterKey", text("DbPassword")), ("ParameterValue", text("hunter2"))]),
        map(&[("key", text("password")), ("value", map(&[("stringValue", text("hunter2"))]))]),
        list(&[text("Authorization"), text("hunter2")]),
        list(&[text("Host"), text("a.example"), text("x-api-key"), text("hunter2")]),
        list(&[list(&[text("x-api-key"), text("hunter2")]), list(&[text("accept"), text("*/*")])]),
        list(&[text("password"), list(&[text("hunter2")])]),
        map(&[("password", map(&[("value", text("hunter2"))]))]),
        list(&[text("AUTH"), text("hunter2")]),
        map(&[("kty", text("oct")), ("k", text("hunter2"))]),
    ] {
        let left = left(value);
        assert!(!left.contains("hunter2") && left.contains(REDACTED), "{left}");
    }
    for value in [
        map(&[("name", text("db.name")), ("value", text("hunter2"))]),
        map(&[("kty", text("EC")), ("x", text("hunter2"))]),
        map(&[("name", text("X-Api-Key")), ("kind", text("hunter2"))]),
        list(&[text("email"), text("password")]),
        list(&[text("Authorization"), text("Content-Type")]),
        list(&[text("password"), text("must have at least 8 characters")]),
        list(&[text("grep"), text("password"), text("hunter2")]),
    ] {
        let left = left(value);
        assert!(!left.contains(REDACTED), "{left}");
    }
}

#[test]
fn ordinary_texts_stay_as_they_are() {
    let lines: Vec<String> =
        ORDINARY.lines().filter(|line| !line.starts_with('#')).map(|line| line.replace("\\n", "\n").replace("\\e", "\x1b")).collect();
    assert!(lines.len() >= 200, "{} texts", lines.len());
    let mut redactor = Redactor::default();
    let mut taken = Vec::new();
    for line in &lines {
        let (key, value) = line.split_once('\t').unwrap_or(("note", line));
        let mut attributes = one(key, text(value));
        if redactor.attributes(&mut attributes) > 0 {
            taken.push(format!("{line:?} -> {:?}", attributes.0[0]));
        }
        let mut words: Vec<String> = value.split(' ').map(str::to_owned).collect();
        if COMMANDS.contains(&words[0].as_str()) && redactor.arguments(&mut words) > 0 {
            taken.push(format!("words of {line:?} -> {words:?}"));
        }
    }
    println!("{} ordinary texts: {} false positives", lines.len(), taken.len());
    assert!(taken.is_empty(), "{} of {} are changed:\n{}", taken.len(), lines.len(), taken.join("\n"));
}

#[test]
fn every_place_is_in_the_table_and_on_the_page() {
    let judged: BTreeSet<&str> =
        FIELD_RULES.iter().filter(|(_, judged)| !matches!(judged, FieldRule::Not(_))).map(|(place, _)| *place).collect();
    let tried: BTreeSet<&str> = PUTS.iter().map(|(place, _)| *place).collect();
    assert_eq!(judged, tried, "the corpus is put into each place of the table");
    let page = include_str!("../../../../docs/formats/redaction.md");
    for (place, judged) in FIELD_RULES {
        let how = match judged {
            FieldRule::Text => "as a text".to_owned(),
            FieldRule::NamedValue => "by its name and as a text".to_owned(),
            FieldRule::Words => "word by word".to_owned(),
            FieldRule::TraceState => "by the names of its members and as a text".to_owned(),
            FieldRule::Not(why) => format!("not: {why}"),
        };
        assert!(page.contains(&format!("| {place} | {how} |")), "docs/formats/redaction.md has no row `| {place} | {how} |`");
    }
}

#[test]
fn what_stays_can_be_read() {
    let mut redactor = Redactor::default();
    for (text, clean) in [
        ("Authorization: Token 9944b09199c62bcf", "Authorization: Token [redacted]"),
        ("Authorization: Digest username=\"ann\", response=\"6629\" next", "Authorization: Digest [redacted] next"),
        ("Cookie: a=1; b=2", "Cookie: [redacted]"),
        ("Set-Cookie: a=\"1;2\"; Path=/", "Set-Cookie: [redacted]; Path=/"),
        ("curl -H 'Cookie: a=\"1\"; b=2' -x", "curl -H 'Cookie: [redacted]' -x"),
        ("Set-Cookie: a=1; Path=/, b=2; Secure", "Set-Cookie: [redacted]; Path=/, [redacted]; Secure"),
        ("curl -u ann:hunter2 https://a.example", "curl -u ann:[redacted] https://a.example"),
        ("mysql -u root -phunter2 shop", "mysql -u root -p[redacted] shop"),
        ("postgres://ann:p@ss@db/x", "postgres://ann:[redacted]@db/x"),
        ("{\"password\":\"a\\\"b\",\"user\":\"ann\"}", "{\"password\":\"[redacted]\",\"user\":\"ann\"}"),
        ("{\\\"password\\\":\\\"a\\\",\\\"user\\\":\\\"ann\\\"}", "{\\\"password\\\":\\\"[redacted]\\\",\\\"user\\\":\\\"ann\\\"}"),
        ("?next=%2Flogin%3Ftoken%3Dabc%26x%3D1", "?next=%2Flogin%3Ftoken%3D[redacted]%26x%3D1"),
        ("CREATE USER ann IDENTIFIED BY 'tiger' ACCOUNT LOCK", "CREATE USER ann IDENTIFIED BY '[redacted]' ACCOUNT LOCK"),
        ("Server=db;Pwd=tiger;Encrypt=yes", "Server=db;Pwd=[redacted];Encrypt=yes"),
        ("Server=db;Pwd=a;1;Application Name=x", "Server=db;Pwd=[redacted];Application Name=x"),
        ("?password=a&1&next=b", "?password=[redacted]&next=b"),
        ("login password=a'1 user=ann", "login password=[redacted] user=ann"),
        ("'login password=a' user='ann'", "'login password=[redacted]' user='ann'"),
        ("password=parts['password'], user=a", "password=[redacted]'password'], user=a"),
        ("find_user_pass(\"a\", \"b\")", "find_user_pass(\"[redacted]\", \"b\")"),
        ("<p>password: a<1</p>", "<p>password: [redacted]</p>"),
        ("<password>tiger</password><a/>", "<password>[redacted]</password><a/>"),
    ] {
        let left = in_string(&mut redactor, text);
        assert_eq!(left, clean);
        assert_eq!(in_string(&mut redactor, &left), clean, "and stays so");
    }
    let mut state = "token=abc,vendor=1".into();
    assert_eq!((redactor.trace_state(&mut state), &*state), (1, &*format!("token={REDACTED},vendor=1")));
}

#[test]
fn texts_put_together_from_the_corpus_are_judged_without_a_panic() {
    const INSERTED: &[&str] = &["é", "😀", "日", "\"", "'", "\\\"", "\n", " "];
    let kinds = kinds();
    let mut redactor = Redactor::default();
    let mut letters = Letters::of("texts put together");
    let mut number = |below: usize| letters.take(DIGITS, 9).parse::<usize>().expect("digits") % below;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..=number(4) {
            let kind = &kinds[number(kinds.len())].text;
            text.push_str(&kind[..kind.floor_char_boundary(number(kind.len() + 1))]);
        }
        for _ in 0..=number(4) {
            text.insert_str(text.floor_char_boundary(number(text.len() + 1)), INSERTED[number(INSERTED.len())]);
        }
        let left = in_string(&mut redactor, &text);
        assert_eq!(in_string(&mut redactor, &left), left, "cleaned once and for all: {text:?}");
    }
}
