//! `up.trace`: one gob value, a struct of two maps.
//!
//! ```text
//! Trace: trace id → Trace { Span { ID { Trace, Span, Parent }, Annotations [{ Key, Value }] }, Sub [Trace] }
//! Span:  trace id → span id → Trace       every span again, once for each of its ancestors
//! ```
//!
//! Only `Trace` is read, which is a twelfth of a deep file; it has all the spans. A span is given to the sink as soon as its
//! annotations have been read. What tree it hangs in says nothing: a span whose parent never came hangs under the root, and
//! its own parent id is the truth. The tree is walked with a list of what is open, for its depth is that of the user's data.

use std::io::Read;

use longpole_model::loss::{Loss, LossKind};
use longpole_model::sink::SpanSink;

use super::annotations::{Annotated, Placing};
use super::gob::{BYTES, STRING, Stream, Type, UINT};
use crate::error::FileError;
use crate::limits::Limits;
use crate::pulumi_payload;

/// Gives the spans of an `up.trace` to the sink, reading no more of it than it must.
///
/// Spans without times are given last, put where their children or their parent are, and marked `longpole.unfinished`. At
/// a cut, all spans before it have been given. Values above the limit of a packet are left out, with their length.
///
/// # Errors
///
/// The input cannot be read, is no file of AppDash, breaks off, or is larger than the limits; with the offset in bytes.
pub fn decode_file(input: impl Read, limits: &Limits, sink: &mut dyn SpanSink) -> Result<(), FileError> {
    let mut reader = FileReader { stream: Stream::new(input), limits: *limits, left_out: 0 };
    let mut placing = Placing::new(limits, true);
    let result = reader.read(&mut |span, sink| placing.span(span, sink), sink);
    if reader.left_out > 0 {
        sink.loss(Loss::new(LossKind::RequestsRefused, reader.left_out, "values of annotations larger than the limit"));
    }
    let spans = placing.finish(sink).spans;
    match result {
        Err(FileError::Truncated { offset, .. }) => Err(FileError::Truncated { offset, spans }),
        other => other,
    }
}

struct FileReader<R> {
    stream: Stream<R>,
    limits: Limits,
    /// Values that were too large to keep.
    left_out: u64,
}

/// Numbers and types of the fields that are needed, found by name: ids and order are the writer's affair.
struct Layout {
    /// Type of a tree.
    tree: i64,
    span: (i64, i64),
    sub: (i64, i64),
    id: (i64, i64),
    annotations: (i64, i64),
    annotation: i64,
    key: i64,
    value: i64,
    trace_id: i64,
    span_id: i64,
    parent_id: i64,
}

impl<R: Read> FileReader<R> {
    fn read(&mut self, give: &mut impl FnMut(Annotated, &mut dyn SpanSink), sink: &mut dyn SpanSink) -> Result<(), FileError> {
        let top = self.stream.value()?;
        let not_ours = "a gob file of something other than traces";
        let (wanted, traces) = self.stream.field(top, "Trace").ok_or_else(|| self.stream.broken(not_ours))?;
        let tree = match self.stream.type_of(traces) {
            Some(&Type::Map(UINT, tree)) => tree,
            _ => return Err(self.stream.broken(not_ours)),
        };
        let layout = self.layout(tree).ok_or_else(|| self.stream.broken(not_ours))?;
        let mut number = -1;
        while let Some(field) = self.stream.next_field(number)? {
            number = field;
            if field != wanted {
                let id = self.stream.field_id(top, field)?;
                self.stream.skip(id)?;
                continue;
            }
            for _ in 0..self.stream.uint()? {
                self.stream.uint()?;
                self.tree(&layout, give, sink)?;
            }
            // All spans are here. What follows is the same again.
            return Ok(());
        }
        Ok(())
    }

    fn layout(&self, tree: i64) -> Option<Layout> {
        let stream = &self.stream;
        let (span, sub) = (stream.field(tree, "Span")?, stream.field(tree, "Sub")?);
        let (id, annotations) = (stream.field(span.1, "ID")?, stream.field(span.1, "Annotations")?);
        let Some(&Type::List(annotation)) = stream.type_of(annotations.1) else { return None };
        let of_type = |of: i64, name: &str, id: i64| stream.field(of, name).filter(|(_, found)| *found == id).map(|(number, _)| number);
        if stream.type_of(sub.1) != Some(&Type::List(tree)) {
            return None;
        }
        Some(Layout {
            tree,
            span,
            sub,
            id,
            annotations,
            annotation,
            key: of_type(annotation, "Key", STRING)?,
            value: of_type(annotation, "Value", BYTES)?,
            trace_id: of_type(id.1, "Trace", UINT)?,
            span_id: of_type(id.1, "Span", UINT)?,
            parent_id: of_type(id.1, "Parent", UINT)?,
        })
    }

    /// Reads one tree.
    fn tree(
        &mut self,
        layout: &Layout,
        give: &mut impl FnMut(Annotated, &mut dyn SpanSink),
        sink: &mut dyn SpanSink,
    ) -> Result<(), FileError> {
        /// A tree that is open: its last field, and trees left in its `Sub`.
        struct OpenTree {
            field: i64,
            subs: u64,
        }
        let mut open = vec![OpenTree { field: -1, subs: 0 }];
        while let Some(top) = open.last_mut() {
            if top.subs > 0 {
                top.subs -= 1;
                open.push(OpenTree { field: -1, subs: 0 });
                continue;
            }
            let Some(field) = self.stream.next_field(top.field)? else {
                open.pop();
                continue;
            };
            top.field = field;
            if field == layout.span.0 {
                let span = self.span(layout)?;
                give(span, sink);
            } else if field == layout.sub.0 {
                top.subs = self.stream.uint()?;
            } else {
                let id = self.stream.field_id(layout.tree, field)?;
                self.stream.skip(id)?;
            }
        }
        Ok(())
    }

    fn span(&mut self, layout: &Layout) -> Result<Annotated, FileError> {
        let mut span = Annotated::default();
        let mut number = -1;
        while let Some(field) = self.stream.next_field(number)? {
            number = field;
            if field == layout.id.0 {
                self.ids(layout, &mut span)?;
            } else if field == layout.annotations.0 {
                for _ in 0..self.stream.uint()? {
                    self.annotation(layout, &mut span)?;
                }
            } else {
                let id = self.stream.field_id(layout.span.1, field)?;
                self.stream.skip(id)?;
            }
        }
        Ok(span)
    }

    fn ids(&mut self, layout: &Layout, span: &mut Annotated) -> Result<(), FileError> {
        let mut number = -1;
        while let Some(field) = self.stream.next_field(number)? {
            number = field;
            let slot = if field == layout.trace_id {
                &mut span.trace
            } else if field == layout.span_id {
                &mut span.span
            } else if field == layout.parent_id {
                &mut span.parent
            } else {
                let id = self.stream.field_id(layout.id.1, field)?;
                self.stream.skip(id)?;
                continue;
            };
            *slot = self.stream.uint()?;
        }
        Ok(())
    }

    fn annotation(&mut self, layout: &Layout, span: &mut Annotated) -> Result<(), FileError> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut number = -1;
        while let Some(field) = self.stream.next_field(number)? {
            number = field;
            let slot = if field == layout.key {
                &mut key
            } else if field == layout.value {
                &mut value
            } else {
                let id = self.stream.field_id(layout.annotation, field)?;
                self.stream.skip(id)?;
                continue;
            };
            let before = self.stream.offset();
            *slot = match self.stream.bytes(self.limits.packet_bytes_max as u64)? {
                Some(bytes) => bytes,
                None => {
                    self.left_out += 1;
                    let length = usize::try_from(self.stream.offset() - before).unwrap_or(usize::MAX);
                    pulumi_payload::left_out(length).into_bytes()
                }
            };
        }
        if span.pairs.len() >= self.limits.values_max as usize {
            return Err(self.stream.broken("too many annotations in one span"));
        }
        span.pairs.push((key, value));
        Ok(())
    }
}
