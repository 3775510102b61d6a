//! The columns that tie a row to a span: the span, how that is known, and what the SDK had published. Samples and waits have them.

use arrow_array::{ArrayRef, FixedSizeBinaryArray, StringViewArray, UInt32Array};
use longpole_model::{ContextRecord, Evidence, SampleLink};

use super::batch::{BadRows, Batch, Rows, at, required, span_id_at, trace_id_at, word};
use super::{Column, Kind, array, column, optional};

pub(crate) const TRACE_ID: Column = optional("trace_id", Kind::TraceId, "Trace of the span it belongs to; NULL if there is no single one.");
pub(crate) const SPAN_ID: Column = optional("span_id", Kind::SpanId, "The span it belongs to; NULL if there is no single one.");
pub(crate) const EVIDENCE: Column = optional(
    "evidence",
    Kind::Text,
    "Source of the link: `record` (the SDK published the span), `journal` (the thread's journal has it), `label` (the imported profile has it), `inferred` (the only open span of that process or thread at that time), `ambiguous` (several were open), `none`.",
);
pub(crate) const CANDIDATES: Column = optional("candidates", Kind::Number, "Number of open spans if the evidence is `ambiguous`.");
pub(crate) const CONTEXT: Column =
    column("context", Kind::Text, "The SDK's context record: `absent` (not found), `no_span`, `torn` (read during a write), `span`.");
pub(crate) const CONTEXT_TRACE_ID: Column = optional("context_trace_id", Kind::TraceId, "Trace of the published span.");
pub(crate) const CONTEXT_SPAN_ID: Column = optional("context_span_id", Kind::SpanId, "The published span.");

fn context_word(context: &ContextRecord) -> &'static str {
    match context {
        ContextRecord::Absent => "absent",
        ContextRecord::NoSpan => "no_span",
        ContextRecord::Torn => "torn",
        ContextRecord::Span { .. } => "span",
    }
}

fn candidates(link: &SampleLink) -> Option<u32> {
    match link.evidence {
        Evidence::Ambiguous { candidates } => Some(candidates),
        Evidence::Record | Evidence::Journal | Evidence::Label | Evidence::Inferred | Evidence::None => None,
    }
}

/// The columns, in the order in which they stand above.
pub(crate) fn build<'a>(rows: impl Iterator<Item = (Option<&'a SampleLink>, ContextRecord)> + Clone) -> [ArrayRef; 7] {
    let links = || rows.clone().map(|(link, _)| link);
    let span = |link: Option<&SampleLink>| link.and_then(|link| link.span);
    let published = || {
        rows.clone().map(|(_, context)| match context {
            ContextRecord::Span { trace_id, span_id } => Some((trace_id, span_id)),
            ContextRecord::Absent | ContextRecord::NoSpan | ContextRecord::Torn => None,
        })
    };
    [
        array::trace_id(links().map(|link| span(link).map(|(trace_id, _)| trace_id))),
        array::span_id(links().map(|link| span(link).map(|(_, span_id)| span_id))),
        array::optional_text(links().map(|link| link.map(|link| link.evidence.as_str()))),
        array::optional_number(links().map(|link| link.and_then(candidates))),
        array::text(rows.clone().map(|(_, context)| context_word(&context))),
        array::trace_id(published().map(|id| id.map(|(trace_id, _)| trace_id))),
        array::span_id(published().map(|id| id.map(|(_, span_id)| span_id))),
    ]
}

/// Those columns of one batch.
pub(crate) struct Links<'a> {
    trace_id: &'a FixedSizeBinaryArray,
    span_id: &'a FixedSizeBinaryArray,
    evidence: &'a StringViewArray,
    candidates: &'a UInt32Array,
    context: &'a StringViewArray,
    context_trace_id: &'a FixedSizeBinaryArray,
    context_span_id: &'a FixedSizeBinaryArray,
}

impl<'a> Links<'a> {
    pub(crate) fn of(batch: &Batch<'a>) -> Rows<Links<'a>> {
        Ok(Links {
            trace_id: batch.id("trace_id")?,
            span_id: batch.id("span_id")?,
            evidence: batch.shared_text("evidence")?,
            candidates: batch.number("candidates")?,
            context: batch.shared_text("context")?,
            context_trace_id: batch.id("context_trace_id")?,
            context_span_id: batch.id("context_span_id")?,
        })
    }

    /// What the SDK had published.
    pub(crate) fn context(&self, row: usize) -> Rows<ContextRecord> {
        Ok(match self.context.value(row) {
            "absent" => ContextRecord::Absent,
            "no_span" => ContextRecord::NoSpan,
            "torn" => ContextRecord::Torn,
            "span" => ContextRecord::Span {
                trace_id: required(trace_id_at(self.context_trace_id, row))?,
                span_id: required(span_id_at(self.context_span_id, row))?,
            },
            other => return Err(BadRows(format!("column context holds the unknown word `{other}`"))),
        })
    }

    /// The link, where the row has one.
    pub(crate) fn link(&self, row: usize) -> Rows<Option<SampleLink>> {
        let Some(how) = at(self.evidence, row, |row| self.evidence.value(row)) else { return Ok(None) };
        let evidence = word("evidence", how, |how| match how {
            "record" => Some(Evidence::Record),
            "journal" => Some(Evidence::Journal),
            "label" => Some(Evidence::Label),
            "inferred" => Some(Evidence::Inferred),
            "ambiguous" => at(self.candidates, row, |row| Evidence::Ambiguous { candidates: self.candidates.value(row) }),
            "none" => Some(Evidence::None),
            _ => None,
        })?;
        Ok(Some(SampleLink { span: trace_id_at(self.trace_id, row)?.zip(span_id_at(self.span_id, row)?), evidence }))
    }
}
