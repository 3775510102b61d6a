//! The functions of a recording or of spans, as a list.

use std::fmt::Display;

use longpole_analysis::Report;
use longpole_analysis::code::functions::Frames;
use longpole_analysis::report::{CutWait, Excerpt, FlameTime};
use longpole_model::Nanos;
use serde::Serialize;

use super::flame::{FlameTimeView, excerpt_in_words};
use super::functions::{TopFrameView, top_frames};
use super::select::{Chosen, PartOfView, roots_of};
use super::shared::{QualityView, Unsampled, nanos};

/// The functions of a recording, or of spans with their descendants (CLI only). A wait counts for the function of the program that waits,
/// not for the call that it waits in.
#[derive(Debug, Clone, Serialize)]
pub struct TopView {
    /// Name of the recording, such as `r7`.
    pub recording: String,
    /// Handle of the span, or of a pole of several spans or of a part; null for the whole run, and for spans chosen by name or trace.
    pub span: Option<String>,
    /// For a pole that is a part of an operation, the operation. The list then shows the part, without descendants of the operation.
    pub part_of: Option<PartOfView>,
    /// The requested name of spans.
    pub name: Option<String>,
    /// Id of the requested trace.
    pub trace_id: Option<String>,
    /// The range of time that it is limited to, from the start of the run; null for all of it.
    pub from_nanos: Option<i64>,
    /// The end of that range.
    pub to_nanos: Option<i64>,
    /// The thread that it is limited to; null for all of them.
    pub tid: Option<u32>,
    /// Which time it shows.
    pub time: FlameTimeView,
    /// Samples and waits.
    pub samples: u64,
    /// Waits of idle workers, and of threads that work for no span in processes that send some, which the list of the whole run omits.
    pub left_out_waits: u64,
    /// The time that these samples and waits stand for.
    pub weight_nanos: i64,
    /// Functions, by the time in themselves, or in them and in what they call.
    pub functions: Vec<TopFrameView>,
    /// How many functions the limit omits.
    pub truncated: usize,
    /// How many functions are hidden because they only start the program or a thread and call it, or interpret.
    pub hidden: usize,
    /// What is missing from the recording.
    pub quality: Vec<QualityView>,
    /// Whether the functions are sorted by total time.
    #[serde(skip)]
    pub by_total: bool,
    /// Why it may have no samples.
    #[serde(skip)]
    pub unsampled: Unsampled,
    /// Samples of the whole recording, including those that `quality` counts.
    #[serde(skip)]
    pub all_samples: u64,
}

/// What a list of functions shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TopOptions {
    /// Sort by total time instead of self time.
    pub by_total: bool,
    /// Maximum number of functions; 0 for all.
    pub limit: usize,
    /// Which time.
    pub time: FlameTime,
    /// For the whole run: include the waits of threads that work for no span.
    pub all_threads: bool,
    /// The part of the recording.
    pub excerpt: Excerpt,
    /// Include functions that only start the program or a thread and call it, or interpret.
    pub all_functions: bool,
}

impl TopView {
    /// `0.50s to 0.80s, thread 29615`; nothing for the whole.
    pub fn excerpt_in_words(&self) -> Option<String> {
        let range = self.from_nanos.zip(self.to_nanos).map(|(from, to)| (Nanos(from), Nanos(to)));
        let excerpt = Excerpt { range, tid: self.tid };
        (!excerpt.is_whole()).then(|| excerpt_in_words(excerpt))
    }

    /// The functions of the run, or of spans with their descendants; `None` where there are no such spans.
    pub fn new(recording: impl Display, report: &Report, chosen: Option<Chosen<'_>>, options: TopOptions) -> Option<Self> {
        let roots = match chosen {
            None => None,
            Some(chosen) => Some(roots_of(report, chosen)?),
        };
        let samples = match (options.time, &roots) {
            (FlameTime::OffCpu, _) => Vec::new(),
            (_, Some(roots)) => roots.samples(report),
            (_, None) => report.samples_below(None),
        };
        let waits = match (options.time, &roots) {
            (FlameTime::OnCpu, _) => Vec::new(),
            (_, Some(roots)) => roots.waits(report),
            (_, None) if options.all_threads || options.excerpt.tid.is_some() => report.all_waits().collect(),
            (_, None) => report.waits_below(None),
        };
        let (samples, waits) = (report.samples_within(options.excerpt, samples), report.waits_within(options.excerpt, waits));
        let is_seen = |cut: &&CutWait| report.recording().waits[cut.wait].stack.is_some();
        let seen = report.count_sampled(&waits);
        let all = if roots.is_none() && options.time != FlameTime::OnCpu { report.sampled_waits_within(options.excerpt) } else { seen };
        let every = report.weigh(&samples, &waits, Frames::All);
        let mut functions = if options.all_functions { every.clone() } else { report.weigh(&samples, &waits, Frames::Telling) };
        let hidden = every.len() - functions.len();
        functions.sort_by_key(|f| {
            let (own, total) = (f.weight.self_time, f.weight.total);
            std::cmp::Reverse(if options.by_total { (total, own) } else { (own, total) })
        });
        let truncated = if options.limit == 0 { 0 } else { functions.len().saturating_sub(options.limit) };
        functions.truncate(functions.len() - truncated);
        let of_samples = samples.iter().map(|&sample| report.recording().samples[sample].weight_nanos);
        let of_waits = waits.iter().filter(is_seen).map(|cut| cut.nanos);
        Some(TopView {
            recording: recording.to_string(),
            span: roots.as_ref().and_then(|roots| roots.handle).map(|handle| handle.to_string()),
            part_of: roots.as_ref().and_then(|roots| roots.part_of(report)),
            name: roots.as_ref().and_then(|roots| roots.name.clone()),
            trace_id: roots.as_ref().and_then(|roots| roots.trace_id.clone()),
            from_nanos: options.excerpt.range.map(|range| range.0.0),
            to_nanos: options.excerpt.range.map(|range| range.1.0),
            tid: options.excerpt.tid,
            time: options.time.into(),
            samples: (samples.len() + seen) as u64,
            left_out_waits: (all - seen) as u64,
            weight_nanos: nanos(of_samples.chain(of_waits).fold(0, u64::saturating_add)),
            functions: top_frames(report, &functions, &samples, &waits),
            truncated,
            hidden,
            quality: report.quality().into_iter().map(|note| QualityView::new(&note.without_savings())).collect(),
            unsampled: Unsampled::of(report),
            by_total: options.by_total,
            all_samples: report.recording().samples.len() as u64,
        })
    }
}
