//! Spans in little memory, until they are written.
//!
//! ```text
//! span ─┬─ head        ids and times; which example, and where the body is       64 bytes
//!       ├─ example     name, kind and emitter: a span for all that share them
//!       └─ body        what else it says; texts that come again by their numbers
//! ```
//!
//! A span of five attributes takes 288 bytes as a value, and some 85 here. To take it out again costs half a microsecond, which is
//! nothing beside what it costs to read or to write it.
//!
//! A body, of a span whose only news is `retries` = 3, where `retries` was the first text that came:
//!
//! ```text
//! 00          unset, and nothing of events, links, flags and what is rare
//! 01          one attribute
//!   01        text number 0: its number × 2 + 1; one without a number is its length × 2, then its bytes
//!   04 06     a whole number: 3, zigzag
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use longpole_model::fast_hash::FastMap;
use longpole_model::{
    Attribute, AttributeValue, Attributes, Id, Recording, Span, SpanEvent, SpanHead, SpanId, SpanKind, SpanLink, SpanOutline, SpanRow,
    StatusCode, Text, TimeRange, TraceId,
};

use crate::encoding::{Decoded, Decoder, put_bytes, put_i64, put_u32, put_u64};
use crate::memory::kept_texts::PLACED_BYTES_MIN;
use crate::numbers::{u32_of, usize_of};

/// Bytes of bodies that are kept together: no body has to be moved when there are more of them.
const CHUNK_BYTES: usize = 1 << 20;

/// NumberedTexts that get a number. Keys and names are among the first that come; values that never come again may fill it, and those
/// behind them are spelled out.
const NUMBERED_MAX: usize = 1 << 16;

/// Longer texts get no number, unless they are much longer: messages and statements seldom come again, prompts and environments
/// come with every span.
const SHORT_BYTES_MAX: usize = 128;

/// Long texts that get a number, and what they may take together.
const LONG_BYTES_MIN: usize = PLACED_BYTES_MIN;
const LONG_MAX: usize = 1 << 12;
const LONG_BYTES_MAX: usize = 64 << 20;

/// Memory of a text beside its characters: counters, and the place of those.
const TEXT_BYTES: usize = 40;

/// Bits of the first byte of a body; its lowest two are the status.
mod has {
    pub(super) const EVENTS: u8 = 1 << 2;
    pub(super) const LINKS: u8 = 1 << 3;
    pub(super) const FLAGS: u8 = 1 << 4;
    /// `tracestate`, a message, or something that the emitter dropped.
    pub(super) const RARE: u8 = 1 << 5;
    /// The attribute of a span that was sent before it ended.
    pub(super) const UNFINISHED: u8 = 1 << 6;
}

/// The first byte of a value.
mod kind {
    pub(super) const EMPTY: u8 = 0;
    pub(super) const STR: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const TRUE: u8 = 3;
    pub(super) const INT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const BYTES: u8 = 6;
    pub(super) const ARRAY: u8 = 7;
    pub(super) const KEY_VALUES: u8 = 8;
}

/// A recording whose spans are compact.
#[derive(Debug)]
pub struct CompactRecording {
    /// All but its spans; it has none.
    pub rest: Recording,
    /// Its spans.
    pub spans: CompactSpans,
}

impl CompactRecording {
    /// The recording, with its spans.
    pub fn unpack(self) -> Recording {
        Recording { spans: self.spans.iter().collect(), ..self.rest }
    }
}

/// What spans of one example share: name and kind; resource and scope by where they are; pid.
type Shared = (Text, SpanKind, usize, usize, Option<u32>);

/// Spans in little memory.
#[derive(Debug, Default)]
pub struct CompactSpans {
    heads: Vec<SpanHead>,
    /// For each span its body: the chunk, and where in it that begins.
    places: Vec<(u32, u32)>,
    chunks: Vec<Vec<u8>>,
    examples: Vec<Span>,
    /// The examples hold on to their emitters, so no other emitter comes to lie where one of these is.
    example_of: FastMap<Shared, SpanRow>,
    texts: NumberedTexts,
    scratch: Vec<u8>,
}

/// Texts and their numbers.
#[derive(Debug, Default)]
struct NumberedTexts {
    list: Vec<Text>,
    number_of: FastMap<Text, u32>,
    long: usize,
    long_bytes: usize,
}

impl CompactSpans {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Bytes of what they say beside ids and times. What many of them say alike counts once, where it is a name or a long text.
    pub fn body_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Bytes that all of it takes in memory, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let chunks: usize = self.chunks.iter().map(Vec::capacity).sum();
        let rows = self.heads.capacity() * size_of::<SpanHead>() + self.places.capacity() * size_of::<(u32, u32)>();
        let shared = self.examples.len() * (size_of::<Span>() + size_of::<(Shared, SpanRow)>());
        let texts = self.texts.list.len() * 3 * size_of::<Text>() + self.texts.long_bytes;
        (chunks + rows + shared + texts) as u64
    }

    /// Ids and times of each, in the order in which they came.
    pub fn heads(&self) -> &[SpanHead] {
        &self.heads
    }

    /// Spans that stand for all others in name, kind and emitter. They are none of them, and say nothing else.
    pub fn examples(&self) -> &[Span] {
        &self.examples
    }

    /// Appends a span.
    pub fn push(&mut self, span: &Span) {
        let head = self.head_of(span);
        self.heads.push(head);
        let place = self.put_body(span);
        self.places.push(place);
    }

    /// Puts another span in the place of this one. The bytes of the old one are not used again.
    pub fn replace(&mut self, index: usize, span: &Span) {
        self.heads[index] = self.head_of(span);
        self.places[index] = self.put_body(span);
    }

    /// A span as it was.
    pub fn get(&self, index: usize) -> Span {
        self.get_counted(index).0
    }

    /// The same, and the bytes of memory that it takes beside what it shares with others.
    pub(crate) fn get_counted(&self, index: usize) -> (Span, u64) {
        let head = &self.heads[index];
        let example = &self.examples[head.example];
        let range = TimeRange { start: head.start, end: head.end };
        let mut span = Span {
            parent_span_id: head.parent_span_id,
            kind: example.kind,
            resource: Arc::clone(&example.resource),
            scope: Arc::clone(&example.scope),
            pid: example.pid,
            ..Span::new(head.trace_id, head.span_id, example.name.clone(), range)
        };
        let mut body = BodyReader { bytes: Decoder::new(self.body(index)), texts: &self.texts.list, made_bytes: size_of::<Span>() };
        body.read_into(&mut span).expect("bytes that were written here");
        let made_bytes = body.made_bytes as u64;
        (span, made_bytes)
    }

    /// All of them as they were.
    pub fn iter(&self) -> impl Iterator<Item = Span> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Whether a span with the ids of a kept one is the same: it began at the same time, under the same name, in the same service.
    pub(crate) fn is_same(&self, index: usize, span: &Span) -> bool {
        self.heads[index].start == span.start && self.is_called(index, span)
    }

    /// Whether it has the name and service of a kept one.
    pub(crate) fn is_called(&self, index: usize, span: &Span) -> bool {
        let example = &self.examples[self.heads[index].example];
        example.name == span.name && example.service_name() == span.service_name()
    }

    /// Whether the span has events.
    pub(crate) fn has_events(&self, index: usize) -> bool {
        self.body(index).first().is_some_and(|first| first & has::EVENTS != 0)
    }

    /// How it ended. Reads no more than one byte of its body.
    pub(crate) fn status(&self, index: usize) -> StatusCode {
        StatusCode::from_otlp(self.body(index).first().map_or(0, |first| i32::from(first & 3)))
    }

    /// Whether it was sent before it ended: `AppDash` and Zipkin send in pieces. Reads no more than one byte of its body.
    pub(crate) fn is_unfinished(&self, index: usize) -> bool {
        self.body(index).first().is_some_and(|first| first & has::UNFINISHED != 0)
    }

    /// The process that its resource names.
    pub(crate) fn pid(&self, index: usize) -> Option<u32> {
        self.examples[self.heads[index].example].pid
    }

    /// Whether it and this span say the same, except for their processes. Reads no more of it than this span has, because a span may come
    /// with the ids of a long one a million times.
    pub(crate) fn says(&mut self, index: usize, span: &Span) -> bool {
        let SpanHead { parent_span_id, start, end, example, .. } = self.heads[index];
        let example = &self.examples[example];
        let is_alike = (parent_span_id, start, end) == (span.parent_span_id, span.start, span.end)
            && (&example.name, example.kind) == (&span.name, span.kind)
            && (Arc::ptr_eq(&example.resource, &span.resource) || example.resource == span.resource)
            && (Arc::ptr_eq(&example.scope, &span.scope) || example.scope == span.scope);
        // A text has a number always or never, so the same words give the same bytes, and no body begins with another one.
        is_alike && {
            self.scratch.clear();
            put_span(&mut self.scratch, &mut self.texts, span);
            self.body(index).starts_with(&self.scratch)
        }
    }

    /// Whether the span has links.
    pub(crate) fn has_links(&self, index: usize) -> bool {
        self.body(index).first().is_some_and(|first| first & has::LINKS != 0)
    }

    /// What their tree is made of; the bodies are given up.
    pub fn into_outline(mut self) -> SpanOutline {
        let mut linked: HashSet<(TraceId, SpanId)> = HashSet::new();
        for index in 0..self.len() {
            if self.has_links(index) {
                let links = self.get(index).links.into_iter();
                let links = links.map(|link| SpanLink { attributes: Attributes::default(), ..link }).collect();
                self.set_apart(index).links = links;
                linked.extend(self.examples.last().into_iter().flat_map(|span| &span.links).map(|link| (link.trace_id, link.span_id)));
            }
        }
        for index in 0..if linked.is_empty() { 0 } else { self.len() } {
            let head = &self.heads[index];
            if !self.has_links(index) && linked.contains(&(head.trace_id, head.span_id)) {
                self.set_apart(index);
            }
        }
        SpanOutline { heads: self.heads, examples: self.examples }
    }

    /// Makes the span an example for itself alone.
    fn set_apart(&mut self, index: usize) -> &mut Span {
        let head = &mut self.heads[index];
        let SpanHead { trace_id, span_id, parent_span_id, start, end, .. } = *head;
        let example = Span { trace_id, span_id, parent_span_id, start, end, ..self.examples[head.example].clone() };
        head.example = SpanRow::at(self.examples.len());
        self.examples.push(example);
        let last = self.examples.len() - 1;
        &mut self.examples[last]
    }

    fn head_of(&mut self, span: &Span) -> SpanHead {
        let emitter = (Arc::as_ptr(&span.resource) as usize, Arc::as_ptr(&span.scope) as usize);
        let shared = (span.name.clone(), span.kind, emitter.0, emitter.1, span.pid);
        let example = *self.example_of.entry(shared).or_insert_with(|| {
            let row = SpanRow::at(self.examples.len());
            self.examples.push(Span {
                kind: span.kind,
                resource: Arc::clone(&span.resource),
                scope: Arc::clone(&span.scope),
                pid: span.pid,
                ..Span::new(TraceId::MAX, SpanId::MAX, span.name.clone(), span.range())
            });
            row
        });
        let &Span { trace_id, span_id, parent_span_id, start, end, .. } = span;
        SpanHead { trace_id, span_id, parent_span_id, start, end, example }
    }

    fn body(&self, index: usize) -> &[u8] {
        let (chunk, offset) = self.places[index];
        &self.chunks[chunk as usize][offset as usize..]
    }

    fn put_body(&mut self, span: &Span) -> (u32, u32) {
        self.scratch.clear();
        put_span(&mut self.scratch, &mut self.texts, span);
        let length = self.scratch.len();
        let has_room = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= length;
        if !self.chunks.last().is_some_and(has_room) {
            self.chunks.push(Vec::with_capacity(length.max(CHUNK_BYTES)));
        }
        let last = self.chunks.len() - 1;
        let offset = self.chunks[last].len();
        self.chunks[last].extend_from_slice(&self.scratch);
        (u32_of(last), u32_of(offset))
    }
}

impl NumberedTexts {
    /// The number of a text, where it has one or gets one.
    fn number(&mut self, text: &Text) -> Option<u32> {
        if (SHORT_BYTES_MAX + 1..LONG_BYTES_MIN).contains(&text.len()) {
            return None;
        }
        if let Some(&number) = self.number_of.get(text.as_str()) {
            return Some(number);
        }
        if text.len() > SHORT_BYTES_MAX {
            if self.long == LONG_MAX || text.len() > LONG_BYTES_MAX - self.long_bytes {
                return None;
            }
            (self.long, self.long_bytes) = (self.long + 1, self.long_bytes + text.len());
        } else if self.list.len() - self.long == NUMBERED_MAX {
            return None;
        }
        let number = u32_of(self.list.len());
        self.number_of.insert(text.clone(), number);
        self.list.push(text.clone());
        Some(number)
    }
}

fn put_text(out: &mut Vec<u8>, texts: &mut NumberedTexts, text: &Text) {
    match texts.number(text) {
        Some(number) => put_u64(out, u64::from(number) << 1 | 1),
        None => {
            put_u64(out, (text.len() as u64) << 1);
            out.extend_from_slice(text.as_bytes());
        }
    }
}

fn put_span(out: &mut Vec<u8>, texts: &mut NumberedTexts, span: &Span) {
    let dropped = [span.dropped_attributes, span.dropped_events, span.dropped_links];
    let is_rare = !span.trace_state.is_empty() || !span.status.message.is_empty() || dropped != [0; 3];
    let bit = |set: bool, bit: u8| if set { bit } else { 0 };
    out.push(
        status_of(span.status.code)
            | bit(!span.events.is_empty(), has::EVENTS)
            | bit(!span.links.is_empty(), has::LINKS)
            | bit(span.flags != 0, has::FLAGS)
            | bit(is_rare, has::RARE)
            | bit(is_unfinished(span), has::UNFINISHED),
    );
    if span.flags != 0 {
        put_u32(out, span.flags);
    }
    if is_rare {
        put_text(out, texts, &span.trace_state);
        put_text(out, texts, &span.status.message);
        dropped.into_iter().for_each(|count| put_u32(out, count));
    }
    put_pairs(out, texts, &span.attributes.0);
    if !span.events.is_empty() {
        put_u64(out, span.events.len() as u64);
        for event in &span.events {
            put_i64(out, event.time.0);
            put_text(out, texts, &event.name);
            put_pairs(out, texts, &event.attributes.0);
        }
    }
    if !span.links.is_empty() {
        put_u64(out, span.links.len() as u64);
        for link in &span.links {
            out.extend_from_slice(&link.trace_id.bytes());
            out.extend_from_slice(&link.span_id.bytes());
            put_pairs(out, texts, &link.attributes.0);
        }
    }
}

pub(crate) fn is_unfinished(span: &Span) -> bool {
    span.attributes.get("longpole.unfinished") == Some(&AttributeValue::Bool(true))
}

/// OTLP's number of a status.
fn status_of(code: StatusCode) -> u8 {
    match code {
        StatusCode::Unset => 0,
        StatusCode::Ok => 1,
        StatusCode::Error => 2,
    }
}

fn put_pairs(out: &mut Vec<u8>, texts: &mut NumberedTexts, pairs: &[Attribute]) {
    put_u64(out, pairs.len() as u64);
    for pair in pairs {
        put_text(out, texts, &pair.key);
        put_value(out, texts, &pair.value);
    }
}

fn put_value(out: &mut Vec<u8>, texts: &mut NumberedTexts, value: &AttributeValue) {
    match value {
        AttributeValue::Empty => out.push(kind::EMPTY),
        AttributeValue::Str(text) => {
            out.push(kind::STR);
            put_text(out, texts, text);
        }
        AttributeValue::Bool(truth) => out.push(if *truth { kind::TRUE } else { kind::FALSE }),
        AttributeValue::Int(number) => {
            out.push(kind::INT);
            put_i64(out, *number);
        }
        AttributeValue::Double(number) => {
            out.push(kind::DOUBLE);
            out.extend_from_slice(&number.to_le_bytes());
        }
        AttributeValue::Bytes(bytes) => {
            out.push(kind::BYTES);
            put_bytes(out, bytes);
        }
        AttributeValue::Array(values) => {
            out.push(kind::ARRAY);
            put_u64(out, values.len() as u64);
            values.iter().for_each(|value| put_value(out, texts, value));
        }
        AttributeValue::KeyValues(pairs) => {
            out.push(kind::KEY_VALUES);
            put_pairs(out, texts, pairs);
        }
    }
}

/// Reads a body.
struct BodyReader<'a> {
    bytes: Decoder<'a>,
    texts: &'a [Text],
    /// Memory of what was read. A text with a number is there already.
    made_bytes: usize,
}

impl BodyReader<'_> {
    fn read_into(&mut self, span: &mut Span) -> Decoded<()> {
        let first = self.bytes.u8("what there is")?;
        span.status.code = StatusCode::from_otlp(i32::from(first & 3));
        if first & has::FLAGS != 0 {
            span.flags = self.bytes.u32()?;
        }
        if first & has::RARE != 0 {
            span.trace_state = self.text()?;
            span.status.message = self.text()?;
            span.dropped_attributes = self.bytes.u32()?;
            span.dropped_events = self.bytes.u32()?;
            span.dropped_links = self.bytes.u32()?;
        }
        span.attributes = self.attributes()?;
        if first & has::EVENTS != 0 {
            span.events = self
                .list(|body| Ok(SpanEvent { time: body.bytes.timestamp()?, name: body.text()?, attributes: body.attributes()? }))?
                .into();
        }
        if first & has::LINKS != 0 {
            span.links = self
                .list(|body| {
                    Ok(SpanLink { trace_id: body.bytes.trace_id()?, span_id: body.bytes.span_id()?, attributes: body.attributes()? })
                })?
                .into();
        }
        Ok(())
    }

    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.bytes.u64()?;
        let mut list = Vec::with_capacity(usize_of(count));
        self.made_bytes += usize_of(count) * size_of::<T>();
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }

    fn attributes(&mut self) -> Decoded<Attributes> {
        self.pairs().map(Attributes)
    }

    fn pairs(&mut self) -> Decoded<Vec<Attribute>> {
        self.list(|body| Ok(Attribute { key: body.text()?, value: body.value()? }))
    }

    fn value(&mut self) -> Decoded<AttributeValue> {
        Ok(match self.bytes.u8("a value")? {
            kind::STR => AttributeValue::Str(self.text()?),
            kind::FALSE => AttributeValue::Bool(false),
            kind::TRUE => AttributeValue::Bool(true),
            kind::INT => AttributeValue::Int(self.bytes.i64()?),
            kind::DOUBLE => {
                let bits = self.bytes.take(8, "a number with a point")?;
                AttributeValue::Double(f64::from_le_bytes(bits.try_into().unwrap_or_default()))
            }
            kind::BYTES => {
                let bytes = self.bytes.bytes()?;
                self.made_bytes += bytes.len();
                AttributeValue::Bytes(bytes.to_vec().into())
            }
            kind::ARRAY => AttributeValue::Array(self.list(Self::value)?.into()),
            kind::KEY_VALUES => AttributeValue::KeyValues(self.pairs()?.into()),
            _ => AttributeValue::Empty,
        })
    }

    fn text(&mut self) -> Decoded<Text> {
        let number = self.bytes.u64()?;
        if number & 1 == 1 {
            return Ok(self.texts[(number >> 1) as usize].clone());
        }
        let bytes = self.bytes.take((number >> 1) as usize, "a string")?;
        self.made_bytes += TEXT_BYTES + bytes.len();
        Ok(std::str::from_utf8(bytes).unwrap_or_default().into())
    }
}

#[cfg(test)]
mod tests {
    use longpole_model::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::testing;

    proptest! {
        #[test]
        fn what_is_taken_out_is_what_was_put_in(spans in prop::collection::vec(testing::any_span(), 0..20), again in testing::any_span()) {
            let mut compact = CompactSpans::default();
            spans.iter().for_each(|span| compact.push(span));
            prop_assert_eq!(&compact.iter().collect::<Vec<_>>(), &spans);
            for (index, span) in spans.iter().enumerate() {
                prop_assert_eq!(compact.has_events(index), !span.events.is_empty());
                prop_assert_eq!(compact.has_links(index), !span.links.is_empty());
                prop_assert_eq!(compact.heads()[index].start, span.start);
                prop_assert_eq!(compact.pid(index), span.pid);
                let other = Span { trace_id: span.trace_id, span_id: span.span_id, pid: span.pid, ..again.clone() };
                prop_assert_eq!(compact.says(index, &other), other == *span);
                let of_another = Span { pid: again.pid, ..span.clone() };
                let says_the_same = compact.says(index, &of_another);
                prop_assert!(says_the_same);
            }
            if !spans.is_empty() {
                compact.replace(0, &again);
                prop_assert_eq!(compact.get(0), again);
                prop_assert_eq!(&compact.iter().skip(1).collect::<Vec<_>>(), &spans[1..]);
            }
        }
    }

    #[test]
    fn a_long_text_that_all_spans_have_counts_once() {
        let of = |text: &dyn Fn(usize) -> String| {
            let mut compact = CompactSpans::default();
            for number in 0..100 {
                let range = TimeRange { start: Timestamp(1), end: Timestamp(2) };
                let id = SpanId::new((number as u64 + 1).to_be_bytes()).unwrap();
                let mut span = Span::new(TraceId::new([1; 16]).unwrap(), id, "chat", range);
                span.attributes.push("prompt", AttributeValue::Str(text(number).into()));
                compact.push(&span);
            }
            compact.body_bytes()
        };
        assert!(of(&|_| "p".repeat(65_000)) < 100 * 20);
        // What is too short to be looked for is spelled out.
        assert!(of(&|number| format!("{number:0500}")) > 100 * 500);
    }

    #[test]
    fn spans_that_share_name_kind_and_emitter_have_one_example_and_links_set_apart() {
        let mut compact = CompactSpans::default();
        let first = testing::span(1, 1, 0, 0);
        let emitted = |number: u8| Span {
            name: "step".into(),
            resource: Arc::clone(&first.resource),
            scope: Arc::clone(&first.scope),
            ..testing::span(1, number, 0, 0)
        };
        let mut spans: Vec<Span> = (1..=6).map(emitted).collect();
        let link = |to: &Span| SpanLink { trace_id: to.trace_id, span_id: to.span_id, attributes: Attributes::default() };
        spans[3].links = [link(&spans[1])].into_iter().collect();
        spans[5].name = "other".into();
        spans.iter().for_each(|span| compact.push(span));
        assert_eq!(compact.examples().len(), 2);
        let outline = compact.into_outline();
        let examples: Vec<usize> = outline.heads.iter().map(|head| head.example.place()).collect();
        assert_eq!(examples, [0, 3, 0, 2, 0, 1]);
        assert_eq!(outline.examples[2], Span { flags: 0, ..spans[3].clone() });
        assert_eq!(outline.examples[3], Span { flags: 0, ..spans[1].clone() });
    }

    #[test]
    fn long_texts_are_spelled_out_and_have_room() {
        let long = "x".repeat(3 * CHUNK_BYTES);
        let mut span = testing::span(1, 1, 0, 0);
        span.attributes.push(long.as_str(), AttributeValue::Str(long.as_str().into()));
        let mut compact = CompactSpans::default();
        [&testing::span(1, 2, 0, 0), &span, &testing::span(1, 3, 0, 0)].into_iter().for_each(|span| compact.push(span));
        assert_eq!(compact.get(1), span);
        assert_eq!(compact.get(2), testing::span(1, 3, 0, 0));
    }
}
