//! What is missing: counted, with its reason, kept with the data.

use std::fmt;

/// What kind of thing is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// Samples the kernel dropped because the ring was full.
    SamplesLost,
    /// The kernel lowered the sampling rate, until the load fell again.
    SamplesThrottled,
    /// Stacks that reach deeper than the bytes that were copied.
    StacksTruncated,
    /// Stacks the unwinder gave up on.
    StacksUnwindFailed,
    /// Samples of interpreted code whose own functions are not known, or not all of them.
    FunctionsNotSeen,
    /// Context records caught in the middle of a write.
    ContextTorn,
    /// Samples whose context record is where it cannot be read, and what processes say of themselves in a form that is not known.
    ContextNotSeen,
    /// Samples whose context record names another span than the journal of their thread.
    ContextDisagrees,
    /// Entries of journals that were overwritten before they were read.
    JournalGaps,
    /// Journals of threads that could not be read, or not to their end.
    JournalsRefused,
    /// Waits that were long enough to be inspected and were not.
    WaitsNotSeen,
    /// Processes whose usage could be read only in part.
    UsageNotSeen,
    /// Binaries whose symbols could not be read.
    SymbolsUnreadable,
    /// No sampling at all, or less than asked.
    ProfilingRefused,
    /// Requests that were refused or cut off: undecodable, too large, too slow, or of somebody who may not send.
    RequestsRefused,
    /// Profiles that could not be fetched from a process.
    ScrapesFailed,
    /// Spans that could not be kept: no valid trace or span id.
    SpansInvalid,
    /// Parent ids and span links that name no valid span; the span is kept without them.
    ReferencesInvalid,
    /// Texts that were not UTF-8; each offending byte is kept as `?`.
    TextReplaced,
    /// Attributes of resources and scopes that were cut or left out, because every span is stored with its own copy.
    AttributesCut,
    /// Items of other signals (metrics, logs) that were accepted and not kept.
    OtherSignals,
    /// Spans or items that the emitter said it had dropped itself.
    DroppedByEmitter,
    /// Spans that threads were inside of, by their journals or records, and that were never received.
    SpansNeverArrived,
    /// Spans whose end never came; they end with the last time that is known of them.
    SpansUnfinished,
    /// Spans received twice; one is kept.
    SpansDuplicate,
    /// Spans, data points and log records that could not be handed on to a target of the user's.
    ForwardFailed,
    /// The recorder was killed; what it had acknowledged is here.
    RecorderKilled,
    /// The write-ahead log ends in a torn frame.
    WalTorn,
    /// Places in the write-ahead log that were damaged after they were written; what stands behind them is here.
    WalDamaged,
    /// Observations that could not be written, as when the disk is full.
    NotWritten,
    /// The wall clock was stepped during the run.
    ClockStepped,
    /// Connections still open when the drain deadline passed.
    DrainTimedOut,
    /// Something in the user's environment keeps spans away, cuts them short or sends them elsewhere as well.
    Environment,
    /// Operations of Pulumi's engine without a call among the spans.
    ResourcesUnmatched,
    /// Operations of Pulumi's engine that had not ended when the command failed or was killed.
    ResourcesUnfinished,
    /// A file that ends in the middle, or breaks the rules of its format; what stands before is here.
    FileCut,
    /// Values with the name or the shape of a credential, which longpole replaced before it stored them.
    ValuesRedacted,
    /// What the format of an export has no place for.
    FormatCannotHold,
    /// Samples of a file that gives their count and not their times.
    SamplesUntimed,
    /// Samples of a file that does not say how long each stands for; a length was assumed.
    WeightsAssumed,
}

impl LossKind {
    /// Every kind.
    pub const ALL: [LossKind; 40] = [
        LossKind::SamplesLost,
        LossKind::SamplesThrottled,
        LossKind::StacksTruncated,
        LossKind::StacksUnwindFailed,
        LossKind::FunctionsNotSeen,
        LossKind::ContextTorn,
        LossKind::ContextNotSeen,
        LossKind::ContextDisagrees,
        LossKind::JournalGaps,
        LossKind::JournalsRefused,
        LossKind::WaitsNotSeen,
        LossKind::UsageNotSeen,
        LossKind::SymbolsUnreadable,
        LossKind::ProfilingRefused,
        LossKind::RequestsRefused,
        LossKind::ScrapesFailed,
        LossKind::SpansInvalid,
        LossKind::ReferencesInvalid,
        LossKind::TextReplaced,
        LossKind::AttributesCut,
        LossKind::OtherSignals,
        LossKind::DroppedByEmitter,
        LossKind::SpansNeverArrived,
        LossKind::SpansUnfinished,
        LossKind::SpansDuplicate,
        LossKind::ForwardFailed,
        LossKind::RecorderKilled,
        LossKind::WalTorn,
        LossKind::WalDamaged,
        LossKind::NotWritten,
        LossKind::ClockStepped,
        LossKind::DrainTimedOut,
        LossKind::Environment,
        LossKind::ResourcesUnmatched,
        LossKind::ResourcesUnfinished,
        LossKind::FileCut,
        LossKind::ValuesRedacted,
        LossKind::FormatCannotHold,
        LossKind::SamplesUntimed,
        LossKind::WeightsAssumed,
    ];

    /// The code SQL, JSON and the page use.
    pub fn as_str(self) -> &'static str {
        match self {
            LossKind::SamplesLost => "samples_lost",
            LossKind::SamplesThrottled => "samples_throttled",
            LossKind::StacksTruncated => "stacks_truncated",
            LossKind::StacksUnwindFailed => "stacks_unwind_failed",
            LossKind::FunctionsNotSeen => "functions_not_seen",
            LossKind::ContextTorn => "context_torn",
            LossKind::ContextNotSeen => "context_not_seen",
            LossKind::ContextDisagrees => "context_disagrees",
            LossKind::JournalGaps => "journal_gaps",
            LossKind::JournalsRefused => "journals_refused",
            LossKind::WaitsNotSeen => "waits_not_seen",
            LossKind::UsageNotSeen => "usage_not_seen",
            LossKind::SymbolsUnreadable => "symbols_unreadable",
            LossKind::ProfilingRefused => "profiling_refused",
            LossKind::RequestsRefused => "requests_refused",
            LossKind::ScrapesFailed => "scrapes_failed",
            LossKind::SpansInvalid => "spans_invalid",
            LossKind::ReferencesInvalid => "references_invalid",
            LossKind::TextReplaced => "text_replaced",
            LossKind::AttributesCut => "attributes_cut",
            LossKind::OtherSignals => "other_signals",
            LossKind::DroppedByEmitter => "dropped_by_emitter",
            LossKind::SpansNeverArrived => "spans_never_arrived",
            LossKind::SpansUnfinished => "spans_unfinished",
            LossKind::SpansDuplicate => "spans_duplicate",
            LossKind::ForwardFailed => "forward_failed",
            LossKind::RecorderKilled => "recorder_killed",
            LossKind::WalTorn => "wal_torn",
            LossKind::WalDamaged => "wal_damaged",
            LossKind::NotWritten => "not_written",
            LossKind::ClockStepped => "clock_stepped",
            LossKind::DrainTimedOut => "drain_timed_out",
            LossKind::Environment => "environment",
            LossKind::ResourcesUnmatched => "resources_unmatched",
            LossKind::ResourcesUnfinished => "resources_unfinished",
            LossKind::FileCut => "file_cut",
            LossKind::ValuesRedacted => "values_redacted",
            LossKind::FormatCannotHold => "format_cannot_hold",
            LossKind::SamplesUntimed => "samples_untimed",
            LossKind::WeightsAssumed => "weights_assumed",
        }
    }

    /// The kind of this code.
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == code)
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// What.
    pub kind: LossKind,
    /// How many.
    pub count: u64,
    /// Why, and what to do about it, as a lower-case fragment for people; empty where the kind says all.
    pub detail: String,
}

impl Loss {
    /// A loss.
    pub fn new(kind: LossKind, count: u64, detail: impl Into<String>) -> Self {
        Loss { kind, count, detail: detail.into() }
    }

    /// Adds `other` to the list: counts of the same kind and detail add up.
    pub fn merge_into(self, losses: &mut Vec<Loss>) {
        match losses.iter_mut().find(|l| l.kind == self.kind && l.detail == self.detail) {
            Some(known) => known.count = known.count.saturating_add(self.count),
            None => losses.push(self),
        }
    }
}
