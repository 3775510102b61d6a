//! From annotations to a span.
//!
//! | key | is |
//! |---|---|
//! | `Name` | name |
//! | `Msg`, `Time`, `_schema:log` | a log: text and time follow each other, once for each |
//! | `Span.Start`, `Span.End`, `_schema:Timespan` | start and end by OpenTracing; the last packet of a span |
//! | `S`, `E`, `_schema:timespan` | the same by AppDash's own clients |
//! | `ClientSend`, `ServerRecv`, `ClientRecv`, `ServerSend` | attributes, and times where there are no others |
//! | `ServerName` | service |
//! | `_schema:…` of another kind | an attribute without a value |
//! | anything else | a tag |

use std::collections::{HashMap, HashSet};

use longpole_model::attribute::AttributeValue;
use longpole_model::id::{SpanId, TraceId};
use longpole_model::sink::SpanSink;
use longpole_model::span::Span;
use longpole_model::time::Timestamp;

use super::SCOPE;
use crate::convert::{Building, Deliver, Losses, span_id, trace_id};
use crate::limits::Limits;
use crate::rfc3339;

pub(super) const NAME: &str = "Name";
pub(super) const MSG: &str = "Msg";
pub(super) const TIME: &str = "Time";
pub(super) const START: &str = "Span.Start";
pub(super) const END: &str = "Span.End";
pub(super) const SERVER_NAME: &str = "ServerName";
pub(super) const SCHEMA_NAME: &str = "_schema:name";
pub(super) const SCHEMA_LOG: &str = "_schema:log";
pub(super) const SCHEMA_TIMESPAN: &str = "_schema:Timespan";
const SCHEMA_NATIVE_TIMESPAN: &str = "_schema:timespan";
const SCHEMA_NATIVE_MSG: &str = "_schema:msg";

/// Whether a key of this name means something other than a tag.
pub(super) fn is_spoken_for(key: &str) -> bool {
    matches!(key, NAME | MSG | TIME | START | END | SERVER_NAME) || is_marker(key)
}

fn is_marker(key: &str) -> bool {
    matches!(key, SCHEMA_NAME | SCHEMA_LOG | SCHEMA_TIMESPAN | SCHEMA_NATIVE_TIMESPAN | SCHEMA_NATIVE_MSG)
}

/// Whether this is the marker that comes last of a span.
pub(super) fn is_last(key: &[u8]) -> bool {
    key == SCHEMA_TIMESPAN.as_bytes() || key == SCHEMA_NATIVE_TIMESPAN.as_bytes()
}

/// A key and its bytes.
pub(super) type Pair = (Vec<u8>, Vec<u8>);

/// A span as AppDash has it.
#[derive(Debug, Default)]
pub(super) struct Annotated {
    pub(super) trace: u64,
    pub(super) span: u64,
    /// 0 for a root.
    pub(super) parent: u64,
    pub(super) pairs: Vec<Pair>,
}

/// A span of the model, as far as its annotations go.
pub(super) struct Half {
    span: Building,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
    /// Logs whose time is not known.
    untimed: Vec<String>,
}

impl Annotated {
    /// What the annotations say; `None`, counted, where the ids are not valid.
    pub(super) fn read(self, limits: &Limits, losses: &mut Losses) -> Option<Half> {
        let (Some(trace_id), Some(id)) = (trace_id(0, self.trace), span_id(self.span)) else {
            losses.spans += 1;
            return None;
        };
        let mut half = Half { span: Building::new(SCOPE, trace_id, id), start: None, end: None, untimed: Vec::new() };
        half.span.parent_span_id = span_id(self.parent);
        let has = |key: &str| self.pairs.iter().any(|(known, _)| known == key.as_bytes());
        let is_native = has(SCHEMA_NATIVE_TIMESPAN);
        // A span that was finished twice sent everything twice: the pairs that are the same are the same pairs.
        let is_repeated = self.pairs.iter().filter(|(key, _)| is_last(key)).count() > 1;
        let mut seen: HashSet<Pair> = HashSet::new();
        let mut seen_logs: HashSet<(String, String)> = HashSet::new();
        let mut message = None;
        for (key, value) in self.pairs {
            let key = match String::from_utf8(key) {
                Ok(key) => key,
                Err(error) => {
                    losses.texts += 1;
                    String::from_utf8_lossy(error.as_bytes()).into_owned()
                }
            };
            match &*key {
                key if is_marker(key) => {}
                MSG => {
                    half.untimed.extend(message.take());
                    message = Some(text(value, losses));
                }
                TIME if message.is_some() => {
                    let time = text(value, losses);
                    if let Some(message) =
                        message.take().filter(|message| !is_repeated || seen_logs.insert((message.clone(), time.clone())))
                    {
                        half.log(&message, &time, limits);
                    }
                }
                NAME => half.span.name = text(value, losses).into(),
                START => half.edge(&key, value, false, losses),
                END => half.edge(&key, value, true, losses),
                "S" if is_native => half.edge(&key, value, false, losses),
                "E" if is_native => half.edge(&key, value, true, losses),
                _ if is_repeated && !seen.insert((key.clone().into_bytes(), value.clone())) => {}
                SERVER_NAME => half.span.service(&text(value, losses)),
                _ => half.span.tag(&key, bytes_or_text(value)),
            }
        }
        half.untimed.extend(message);
        half.fall_back_to_events();
        Some(half)
    }
}

fn text(value: Vec<u8>, losses: &mut Losses) -> String {
    String::from_utf8(value).unwrap_or_else(|error| {
        losses.texts += 1;
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

fn bytes_or_text(value: Vec<u8>) -> AttributeValue {
    String::from_utf8(value).map_or_else(|error| AttributeValue::Bytes(error.into_bytes().into()), |text| AttributeValue::Str(text.into()))
}

impl Half {
    /// Start or end; of two starts the earlier, of two ends the later.
    fn edge(&mut self, key: &str, value: Vec<u8>, is_end: bool, losses: &mut Losses) {
        let text = text(value, losses);
        let Some(nanos) = rfc3339::parse(&text) else {
            self.span.tag(key, AttributeValue::Str(text.into()));
            return;
        };
        let time = self.span.time(nanos, || text);
        if is_end {
            self.end = self.end.max(Some(time));
        } else {
            self.start = Some(self.start.map_or(time, |start| start.min(time)));
        }
    }

    fn log(&mut self, message: &str, time: &str, limits: &Limits) {
        match rfc3339::parse(time) {
            Some(nanos) => {
                let time = self.span.time(nanos, || time.to_owned());
                self.span.log_text(time, message, limits);
            }
            None => {
                self.untimed.push(message.to_owned());
                self.span.tag(TIME, AttributeValue::Str(time.into()));
            }
        }
    }

    /// The events of AppDash's own HTTP and SQL clients say when the span was, where nothing else does.
    fn fall_back_to_events(&mut self) {
        let noted = |keys: [&str; 2], span: &Building| {
            let text = keys.into_iter().find_map(|key| span.attributes.get_str(key))?;
            rfc3339::timestamp(text)
        };
        self.start = self.start.or_else(|| noted(["ClientSend", "ServerRecv"], &self.span));
        self.end = self.end.or_else(|| noted(["ClientRecv", "ServerSend"], &self.span));
    }

    fn is_whole(&self) -> bool {
        self.start.is_some() && self.end.is_some()
    }

    /// The span between these times.
    fn place(mut self, start: Timestamp, end: Timestamp, limits: &Limits) -> Span {
        self.span.start = start;
        self.span.end = end;
        for message in std::mem::take(&mut self.untimed) {
            self.span.log_text(start, &message, limits);
        }
        self.span.finish()
    }
}

/// Gives spans to the sink as they come, and holds back those without times until all their relatives came.
pub(super) struct Placing {
    limits: Limits,
    pub(super) losses: Losses,
    pub(super) deliver: Deliver,
    waiting: Vec<Half>,
    /// First start and last end of the children of a span.
    children: HashMap<(TraceId, SpanId), (Timestamp, Timestamp)>,
    starts: HashMap<(TraceId, SpanId), Timestamp>,
    /// Where a span without any relative is put.
    last: Option<Timestamp>,
    first: Option<Timestamp>,
    /// Whether relatives are remembered. Not so on a connection, which may last for days.
    remembers: bool,
}

impl Placing {
    pub(super) fn new(limits: &Limits, remembers: bool) -> Self {
        Placing {
            limits: *limits,
            losses: Losses::default(),
            deliver: Deliver::default(),
            waiting: Vec::new(),
            children: HashMap::new(),
            starts: HashMap::new(),
            last: None,
            first: None,
            remembers,
        }
    }

    pub(super) fn span(&mut self, annotated: Annotated, sink: &mut dyn SpanSink) {
        let Some(half) = annotated.read(&self.limits, &mut self.losses) else { return };
        match (half.start, half.end) {
            (Some(start), Some(end)) => self.give(half, start, end, sink),
            _ => self.waiting.push(half),
        }
        if !self.remembers {
            self.give_waiting(sink);
        }
    }

    fn give(&mut self, half: Half, start: Timestamp, end: Timestamp, sink: &mut dyn SpanSink) {
        self.losses.times_of(&half.span);
        self.remember(&half.span, start, end);
        let span = half.place(start, end, &self.limits);
        self.deliver.span(&span, sink);
    }

    fn remember(&mut self, span: &Building, start: Timestamp, end: Timestamp) {
        self.last = self.last.max(Some(end));
        self.first = Some(self.first.map_or(start, |first| first.min(start)));
        if !self.remembers {
            return;
        }
        self.starts.insert((span.trace_id, span.span_id), start);
        if let Some(parent) = span.parent_span_id {
            let bounds = self.children.entry((span.trace_id, parent)).or_insert((start, end));
            *bounds = (bounds.0.min(start), bounds.1.max(end));
        }
    }

    /// Gives what was held back, and tells the sink what was lost.
    pub(super) fn finish(mut self, sink: &mut dyn SpanSink) -> Deliver {
        self.give_waiting(sink);
        self.losses.report(sink);
        self.deliver
    }

    /// Gives the spans that were held back: from their own start or log to their last child's end, else from first child to
    /// last child, else nothing long at the start of their parent, else at the last known time.
    fn give_waiting(&mut self, sink: &mut dyn SpanSink) {
        let mut waiting = std::mem::take(&mut self.waiting);
        // Parents come before their children, so that backwards each one's children are known.
        for half in waiting.iter_mut().rev() {
            let own = half.span.events.iter().map(|event| event.time);
            let (own_first, own_last) = (own.clone().min(), own.max());
            let children = self.children.get(&(half.span.trace_id, half.span.span_id)).copied();
            half.start = half.start.or(own_first.into_iter().chain(children.map(|bounds| bounds.0)).chain(half.end).min());
            if half.end.is_none() {
                half.end = [half.start, own_last, children.map(|bounds| bounds.1)].into_iter().max().flatten();
                half.span.unfinished();
            }
            if let (Some(start), Some(end)) = (half.start, half.end) {
                self.remember(&half.span, start, end);
            }
        }
        for mut half in waiting {
            if !half.is_whole() {
                let parent = half.span.parent_span_id.and_then(|parent| self.starts.get(&(half.span.trace_id, parent)).copied());
                // A connection that broke off did so after the last that came over it, a file may have lost anything.
                let known = if self.remembers { self.first } else { self.last };
                half.start = parent.or(known).or(Some(Timestamp::default()));
                half.end = half.start;
            }
            if let (Some(start), Some(end)) = (half.start, half.end) {
                self.give(half, start, end, sink);
            }
        }
    }

    /// Tells the sink what was lost so far.
    pub(super) fn report(&mut self, sink: &mut dyn SpanSink) {
        std::mem::take(&mut self.losses).report(sink);
    }
}
