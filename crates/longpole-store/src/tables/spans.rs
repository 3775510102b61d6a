//! Spans, in the order of [`crate::span_order`].

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, MapArray, StringViewArray};
use longpole_model::fast_hash::FastMap;
use longpole_model::{Resource, Scope, Span, SpanKind, Status, StatusCode, ThinVec, Timestamp};

use super::attributes::{self, attributes_at, kept_text, passing_attributes_at, weight};
use super::batch::{Batch, Rows, at, required, span_id_at, text_at, trace_id_at, word};
use super::{Kind, Table, array, column, optional};
use crate::compact_spans::CompactSpans;
use crate::memory::budget::Budget;
use crate::memory::emitters::{Emitter, Remembered};
use crate::memory::kept_texts::KeptTexts;
use crate::memory::needs::Needs;
use crate::numbers::u32_of;
use crate::span_order::{self, RowPlace};

pub(crate) static TABLE: Table = Table::new(
    "spans",
    "One row per span: traces by their start, each trace's spans adjacent and in tree pre-order.",
    &[
        column("span_row", Kind::Nanos, "Number of this row, from 0; `parent_row`, `span_events` and `span_links` refer to it."),
        optional("parent_row", Kind::Nanos, "Row of the parent; NULL for a root, or if the parent is not in the recording."),
        column("descendants", Kind::Number, "Spans below this one: they are the rows `span_row + 1` to `span_row + descendants`."),
        column("depth", Kind::Number, "Edges up to the root: 0 for a root."),
        column("trace_id", Kind::TraceId, "Trace."),
        column("span_id", Kind::SpanId, "Id, unique within its trace."),
        optional("parent_span_id", Kind::SpanId, "Id of the parent as sent, whether or not the parent is in the recording."),
        column("service_name", Kind::Text, "`service.name` of the emitter, or `unknown_service`."),
        column("name", Kind::Text, "Operation."),
        column("kind", Kind::Text, "`unspecified`, `internal`, `server`, `client`, `producer` or `consumer`."),
        column("start_time_unix_nano", Kind::Nanos, "Start by the emitter's clock."),
        column("end_time_unix_nano", Kind::Nanos, "End by the emitter's clock."),
        column("duration_nanos", Kind::Nanos, "From start to end; 0 if the end is before the start."),
        column("status_code", Kind::Text, "`unset`, `ok` or `error`."),
        optional("status_message", Kind::Text, "Message of the error."),
        optional("pid", Kind::Number, "Process that emitted it: `process.pid` of its resource, else the peer of the connection."),
        column("attributes", Kind::TextMap, "Attributes as strings: `attributes['http.route']`."),
        optional("attributes_json", Kind::Text, "The same with their types, as OTLP's JSON; NULL if all are strings."),
        column("resource_attributes", Kind::TextMap, "Attributes of the emitter as strings."),
        optional("resource_attributes_json", Kind::Text, "The same with their types; NULL if all are strings."),
        optional("scope_name", Kind::Text, "Instrumentation that emitted it."),
        optional("scope_version", Kind::Text, "Its version."),
        column("scope_attributes", Kind::TextMap, "Its attributes as strings."),
        optional("scope_attributes_json", Kind::Text, "The same with their types; NULL if all are strings."),
        optional("trace_state", Kind::Text, "W3C `tracestate`."),
        column("flags", Kind::Number, "OTLP's flags; W3C trace flags in the low byte."),
        column("dropped_attributes_count", Kind::Number, "Attributes the emitter dropped."),
        column("dropped_events_count", Kind::Number, "Events the emitter dropped."),
        column("dropped_links_count", Kind::Number, "Links the emitter dropped."),
    ],
    || TABLE.arrow_schema(),
);

/// Columns that a span does not need: they say again what others say.
pub(crate) const DERIVED: [&str; 6] = ["span_row", "parent_row", "descendants", "depth", "service_name", "duration_nanos"];

/// A span at its place.
pub(crate) struct Row<'a> {
    /// The number of the row.
    pub(crate) row: u32,
    pub(crate) place: RowPlace,
    pub(crate) span: Cow<'a, Span>,
}

/// Spans that are to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spans<'a> {
    /// They are there.
    Whole(&'a [Span]),
    /// They are taken out when their turn comes.
    Compact(&'a CompactSpans),
}

impl Spans<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Spans::Whole(spans) => spans.len(),
            Spans::Compact(spans) => spans.len(),
        }
    }
}

/// The rows of spans.
pub(crate) struct SpanRows<'a> {
    spans: Spans<'a>,
    places: Vec<RowPlace>,
    /// The owner of the last parts that were written. One span may have a million events, and they are written a thousand at a time.
    last_owner: RefCell<Option<(u32, Arc<Span>)>>,
}

impl<'a> SpanRows<'a> {
    pub(crate) fn of(spans: Spans<'a>) -> Self {
        let places = match spans {
            Spans::Whole(spans) => span_order::rows(spans),
            Spans::Compact(spans) => span_order::rows(spans.heads()),
        };
        SpanRows { spans, places, last_owner: RefCell::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, row: usize) -> Row<'a> {
        let place = self.places[row];
        let span = match self.spans {
            Spans::Whole(spans) => Cow::Borrowed(&spans[place.index as usize]),
            Spans::Compact(spans) => Cow::Owned(spans.get(place.index as usize)),
        };
        Row { row: u32_of(row), place, span }
    }

    /// The span of a row whose parts are written.
    fn owner(&self, row: u32) -> Owner<'a> {
        let index = self.places[row as usize].index as usize;
        let spans = match self.spans {
            Spans::Whole(spans) => return Owner::Whole(&spans[index]),
            Spans::Compact(spans) => spans,
        };
        let mut last = self.last_owner.borrow_mut();
        let span = match &*last {
            Some((known, span)) if *known == row => Arc::clone(span),
            _ => Arc::new(spans.get(index)),
        };
        *last = Some((row, Arc::clone(&span)));
        Owner::Unpacked(span)
    }

    pub(crate) fn range(&self, range: Range<usize>) -> Vec<Row<'a>> {
        range.map(|row| self.get(row)).collect()
    }

    pub(super) fn has_events(&self, row: usize) -> bool {
        let index = self.places[row].index as usize;
        match self.spans {
            Spans::Whole(spans) => !spans[index].events.is_empty(),
            Spans::Compact(spans) => spans.has_events(index),
        }
    }

    pub(super) fn has_links(&self, row: usize) -> bool {
        let index = self.places[row].index as usize;
        match self.spans {
            Spans::Whole(spans) => !spans[index].links.is_empty(),
            Spans::Compact(spans) => spans.has_links(index),
        }
    }
}

/// One of several that belong to the span of a row: an event, a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanPart {
    pub(super) span_row: u32,
    pub(super) number: u32,
}

impl SpanPart {
    /// The parts of these rows, by the number of parts of each.
    pub(super) fn of(rows: impl Iterator<Item = (usize, usize)>) -> Vec<SpanPart> {
        let of_row =
            |(row, count): (usize, usize)| (0..count).map(move |number| SpanPart { span_row: u32_of(row), number: u32_of(number) });
        rows.flat_map(of_row).collect()
    }
}

/// The spans of parts, each taken out once.
pub(super) struct Owners<'a> {
    spans: Vec<Owner<'a>>,
    of_part: Vec<usize>,
}

enum Owner<'a> {
    Whole(&'a Span),
    Unpacked(Arc<Span>),
}

impl<'a> Owners<'a> {
    pub(super) fn of(parts: &[SpanPart], rows: &SpanRows<'a>) -> Self {
        let mut owners = Owners { spans: Vec::new(), of_part: Vec::with_capacity(parts.len()) };
        let mut last = None;
        for part in parts {
            if last != Some(part.span_row) {
                owners.spans.push(rows.owner(part.span_row));
                last = Some(part.span_row);
            }
            owners.of_part.push(owners.spans.len() - 1);
        }
        owners
    }

    /// The span of each part.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Span> {
        self.of_part.iter().map(|&at| match &self.spans[at] {
            Owner::Whole(span) => *span,
            Owner::Unpacked(span) => span.as_ref(),
        })
    }
}

pub(crate) fn build(rows: &[Row<'_>]) -> Vec<ArrayRef> {
    let spans = || rows.iter().map(|row| row.span.as_ref());
    let (attributes, attributes_json) = attributes::columns(spans().map(|span| &span.attributes));
    let (resource, resource_json) = attributes::columns(spans().map(|span| &span.resource.attributes));
    let (scope, scope_json) = attributes::columns(spans().map(|span| &span.scope.attributes));
    vec![
        array::int(rows.iter().map(|row| i64::from(row.row))),
        array::optional_int(rows.iter().map(|row| row.place.parent_row.map(i64::from))),
        array::number(rows.iter().map(|row| row.place.descendants)),
        array::number(rows.iter().map(|row| row.place.depth)),
        array::trace_id(spans().map(|span| Some(span.trace_id))),
        array::span_id(spans().map(|span| Some(span.span_id))),
        array::span_id(spans().map(|span| span.parent_span_id)),
        array::text(spans().map(Span::service_name)),
        array::text(spans().map(|span| span.name.as_str())),
        array::text(spans().map(|span| span.kind.as_str())),
        array::int(spans().map(|span| span.start.unix_nanos())),
        array::int(spans().map(|span| span.end.unix_nanos())),
        array::int(spans().map(Span::duration_nanos)),
        array::text(spans().map(|span| span.status.code.as_str())),
        array::text_unless_empty(spans().map(|span| span.status.message.as_str())),
        array::optional_number(spans().map(|span| span.pid)),
        attributes,
        attributes_json,
        resource,
        resource_json,
        array::text_unless_empty(spans().map(|span| span.scope.name.as_str())),
        array::text_unless_empty(spans().map(|span| span.scope.version.as_str())),
        scope,
        scope_json,
        array::text_unless_empty(spans().map(|span| span.trace_state.as_str())),
        array::number(spans().map(|span| span.flags)),
        array::number(spans().map(|span| span.dropped_attributes)),
        array::number(spans().map(|span| span.dropped_events)),
        array::number(spans().map(|span| span.dropped_links)),
    ]
}

fn kind_of(word: &str) -> Option<SpanKind> {
    (0..=5).map(SpanKind::from_otlp).find(|kind| kind.as_str() == word)
}

fn status_of(word: &str) -> Option<StatusCode> {
    (0..=2).map(StatusCode::from_otlp).find(|code| code.as_str() == word)
}

/// Emitters of the rows that are read, each kept once.
#[derive(Debug, Default)]
pub(crate) struct Emitters {
    resources: Remembered<Resource>,
    scopes: Remembered<Scope>,
}

/// Where the cells of a row lie that say an emitter. Those of another row of its batch that lie there are equal; to see that takes no
/// decoding.
#[derive(PartialEq, Eq, Hash)]
struct Cells<'a> {
    keys: &'a [u128],
    values: &'a [u128],
    texts: [Option<u128>; 3],
}

impl<'a> Cells<'a> {
    /// `None` where the columns are not what they should be: who decodes them says so.
    fn at(maps: &'a MapArray, texts: [Option<&StringViewArray>; 3], row: usize) -> Option<Self> {
        let (start, end) = (*maps.value_offsets().get(row)?, *maps.value_offsets().get(row + 1)?);
        let range = usize::try_from(start).ok()?..usize::try_from(end).ok()?;
        let cells = |column: &'a ArrayRef| column.as_string_view_opt()?.views().get(range.clone());
        let texts = texts.map(|column| column.and_then(|column| at(column, row, |row| column.views()[row])));
        Some(Cells { keys: cells(maps.keys())?, values: cells(maps.values())?, texts })
    }
}

/// The emitters of one batch, by where their cells lie.
struct OfBatch<'a, 'k, T> {
    known: &'k mut Remembered<T>,
    at_cells: FastMap<Cells<'a>, Arc<T>>,
    last: Option<Arc<T>>,
}

impl<'a, 'k, T: Emitter> OfBatch<'a, 'k, T> {
    fn new(known: &'k mut Remembered<T>) -> Self {
        OfBatch { known, at_cells: FastMap::default(), last: None }
    }

    /// The emitter of these cells; `decode` makes it, and `weight` says what it takes, where no other row had it.
    fn get(
        &mut self,
        budget: &Budget,
        cells: Option<Cells<'a>>,
        decode: impl FnOnce() -> Rows<T>,
        weight: impl FnOnce(&T) -> u64,
    ) -> Rows<Arc<T>> {
        let found = cells.as_ref().and_then(|cells| self.at_cells.get(cells));
        if let Some(found) = found {
            // It is remembered as its writer did, who knows of no batch.
            if !self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, found)) {
                if !self.known.holds(found) {
                    self.known.remember(found);
                }
                self.last = Some(Arc::clone(found));
            }
            return Ok(Arc::clone(found));
        }
        let value = decode()?;
        let value = match self.known.equal(&value) {
            Some(known) => Arc::clone(known),
            None => {
                budget.take(size_of::<T>() as u64 + weight(&value))?;
                let value = Arc::new(value);
                self.known.remember(&value);
                value
            }
        };
        if let Some(cells) = cells {
            self.at_cells.insert(cells, Arc::clone(&value));
        }
        self.last = Some(Arc::clone(&value));
        Ok(value)
    }
}

/// Counts what spans take when they are read, with their events and links, without the rows of these three tables.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    resources: Written<Resource>,
    scopes: Written<Scope>,
}

/// The emitters of the rows that are written.
#[derive(Debug)]
struct Written<T> {
    known: Remembered<T>,
    last: Option<Arc<T>>,
}

impl<T> Default for Written<T> {
    fn default() -> Self {
        Written { known: Remembered::default(), last: None }
    }
}

impl<T: Emitter> Written<T> {
    /// Whether the reader has to keep this one.
    fn is_new(&mut self, value: &Arc<T>) -> bool {
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, value)) {
            return false;
        }
        let is_known = self.known.holds(value) || self.known.equal(value).is_some();
        if !is_known {
            self.known.remember(value);
        }
        // What is unlike itself is not remembered, and new each time.
        self.last = (is_known || self.known.holds(value)).then(|| Arc::clone(value));
        !is_known
    }
}

impl Counted {
    pub(crate) fn count(&mut self, needs: &mut Needs, texts: &mut KeptTexts, rows: &[Row<'_>]) {
        for span in rows.iter().map(|row| row.span.as_ref()) {
            if self.resources.is_new(&span.resource) {
                needs.keep(size_of::<Resource>() as u64);
                attributes::count(needs, texts, &span.resource.attributes);
            }
            if self.scopes.is_new(&span.scope) {
                needs.keep(size_of::<Scope>() as u64 + (span.scope.name.len() + span.scope.version.len()) as u64);
                attributes::count(needs, texts, &span.scope.attributes);
            }
            for text in [&span.name, &span.status.message, &span.trace_state] {
                attributes::count_text(needs, texts, text);
            }
            attributes::count(needs, texts, &span.attributes);
            for event in &span.events {
                attributes::count_text(needs, texts, &event.name);
                attributes::count(needs, texts, &event.attributes);
            }
            span.links.iter().for_each(|link| attributes::count(needs, texts, &link.attributes));
        }
    }
}

/// Durations in nanoseconds, of a batch with this column.
pub(crate) fn read_durations(batch: &Batch<'_>, take: impl FnMut(u64)) -> Rows<()> {
    batch.int("duration_nanos")?.values().iter().map(|nanos| nanos.cast_unsigned()).for_each(take);
    Ok(())
}

/// Services, operations and kinds, of a batch with these three columns.
pub(crate) fn read_operations(batch: &Batch<'_>, mut take: impl FnMut(&str, &str, SpanKind)) -> Rows<()> {
    let (service, name, kind) = (batch.shared_text("service_name")?, batch.shared_text("name")?, batch.shared_text("kind")?);
    let mut last = None;
    for row in batch.rows() {
        let found = (service.value(row), name.value(row), kind.value(row));
        if last != Some(found) {
            take(found.0, found.1, word("kind", found.2, kind_of)?);
            last = Some(found);
        }
    }
    Ok(())
}

pub(crate) fn read(batch: &Batch<'_>, texts: &mut KeptTexts, emitters: &mut Emitters, spans: &mut Vec<Span>) -> Rows<()> {
    let (trace_id, span_id, parent) = (batch.id("trace_id")?, batch.id("span_id")?, batch.id("parent_span_id")?);
    let (name, kind, trace_state) = (batch.shared_text("name")?, batch.shared_text("kind")?, batch.shared_text("trace_state")?);
    let (start, end) = (batch.int("start_time_unix_nano")?, batch.int("end_time_unix_nano")?);
    let (code, message) = (batch.shared_text("status_code")?, batch.shared_text("status_message")?);
    let (pid, flags) = (batch.number("pid")?, batch.number("flags")?);
    let (maps, typed) = (batch.map("attributes")?, batch.shared_text("attributes_json")?);
    let (resource_maps, resource_typed) = (batch.map("resource_attributes")?, batch.shared_text("resource_attributes_json")?);
    let (scope_maps, scope_typed) = (batch.map("scope_attributes")?, batch.shared_text("scope_attributes_json")?);
    let (scope_name, scope_version) = (batch.shared_text("scope_name")?, batch.shared_text("scope_version")?);
    let dropped_attributes = batch.number("dropped_attributes_count")?;
    let dropped_events = batch.number("dropped_events_count")?;
    let dropped_links = batch.number("dropped_links_count")?;
    let (mut resources, mut scopes) = (OfBatch::new(&mut emitters.resources), OfBatch::new(&mut emitters.scopes));
    let budget = batch.budget();
    for row in batch.rows() {
        let cells = Cells::at(resource_maps, [Some(resource_typed), None, None], row);
        let decode = || Ok(Resource { attributes: passing_attributes_at(budget, texts, resource_maps, resource_typed, row)? });
        let resource = resources.get(budget, cells, decode, |resource| weight(&resource.attributes))?;
        let cells = Cells::at(scope_maps, [Some(scope_typed), Some(scope_name), Some(scope_version)], row);
        let decode = || {
            Ok(Scope {
                name: text_at(scope_name, row),
                version: text_at(scope_version, row),
                attributes: passing_attributes_at(budget, texts, scope_maps, scope_typed, row)?,
            })
        };
        let weight_of_scope = |scope: &Scope| (scope.name.len() + scope.version.len()) as u64 + weight(&scope.attributes);
        let scope = scopes.get(budget, cells, decode, weight_of_scope)?;
        let status_message = at(message, row, |row| message.value(row)).unwrap_or_default();
        let state = at(trace_state, row, |row| trace_state.value(row)).unwrap_or_default();
        spans.push(Span {
            trace_id: required(trace_id_at(trace_id, row))?,
            span_id: required(span_id_at(span_id, row))?,
            parent_span_id: span_id_at(parent, row)?,
            trace_state: kept_text(budget, texts, state)?,
            flags: flags.value(row),
            name: kept_text(budget, texts, name.value(row))?,
            kind: word("kind", kind.value(row), kind_of)?,
            start: Timestamp(start.value(row)),
            end: Timestamp(end.value(row)),
            attributes: attributes_at(budget, texts, maps, typed, row)?,
            dropped_attributes: dropped_attributes.value(row),
            events: ThinVec::new(),
            dropped_events: dropped_events.value(row),
            links: ThinVec::new(),
            dropped_links: dropped_links.value(row),
            status: Status { code: word("status_code", code.value(row), status_of)?, message: kept_text(budget, texts, status_message)? },
            resource,
            scope,
            pid: at(pid, row, |row| pid.value(row)),
        });
    }
    Ok(())
}
