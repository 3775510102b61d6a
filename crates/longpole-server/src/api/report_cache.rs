//! Where reports come from, and those of the last requests.
//!
//! ```text
//! query ─┐
//! query ─┼─► place on the shelf ─► one job reads and reports ─► report, kept for the next query
//! query ─┘   each waits as long as a query may; the job stops when none of them waits any more
//! ```
//!
//! The job has the place of the query that came first; the others have none while they wait. A report takes memory of the queries for as long
//! as it is kept, and goes when they need it.

use std::collections::{HashSet, VecDeque};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longpole_analysis::Report;
use longpole_model::profile::{ProfileSeries, ProfiledSpan};
use longpole_model::{Span, SpanId, Timestamp, TraceId};
use longpole_recording::kept::{self, KeptView};
use longpole_recording::memory::{long_text_bytes, view_bytes};
use longpole_recording::source_file::SourceConsent;
use longpole_recording::view::ServerView;
use longpole_recording::{import, seal};
use longpole_store::live::{LiveStore, MemoryPool, ProfileFilter, ProfilePart, QueryLimits, QueryMemory, QueryStop, TraceExtent};
use longpole_store::{DirectoryIdentity, RecordingName, RecordingState, Store, StoreError, StoredRecording};
use longpole_wire::jaeger::trace_id;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout_at;

use super::{Answer, ApiError, ReportName, json};
use crate::limits::{REPORTS_BYTES_MAX, REPORTS_MAX};
use crate::off_the_reactor::{QUERY, Unfinished, off_the_reactor, query_limits};

/// Memory of the view of the tree for each span: its columns.
const TREE_SPAN_BYTES: u64 = 256;

/// The reports of the last requests. A sealed recording never changes, so its report stays valid; each request checks that the recording still
/// exists. A trace changes as long as spans of it come.
pub(crate) struct ReportCache {
    source: ReportSource,
    pub(super) consent: SourceConsent,
    reports: Mutex<VecDeque<Shelved>>,
    /// Memory of reports; `None` where the user who asks has all of it.
    memory: Option<Arc<MemoryPool>>,
}

/// What there are reports of.
enum ReportSource {
    /// Recordings of the store in this directory.
    Recordings(PathBuf),
    /// Traces of a server, and the recordings that were pushed to it: its clients may be anybody, so those that a user made here are not
    /// among them.
    Served {
        traces: LiveStore,
        /// The store of what was pushed.
        pushed: PathBuf,
        /// What the page says of the server.
        view: ServerView,
    },
}

/// Which report this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    /// The number alone is not enough: a store that was removed and made again counts from 1 again.
    Recording { name: RecordingName, directory: DirectoryIdentity, start: Timestamp },
    /// With how much there is of it, and until when there are profiles that may be of it: by these it changes.
    Trace { id: TraceId, extent: TraceExtent, profiled: Option<Timestamp> },
}

impl Label {
    fn of(stored: &StoredRecording) -> Result<Self, StoreError> {
        Ok(Label::Recording { name: stored.name, directory: stored.directory_identity()?, start: stored.summary.start })
    }
}

/// A report, with its memory.
pub(crate) struct KeptReport {
    report: Report,
    memory: QueryMemory,
    /// What a view may copy of its long texts.
    long_text_bytes: u64,
}

impl Deref for KeptReport {
    type Target = Report;

    fn deref(&self) -> &Report {
        &self.report
    }
}

/// A report that is ready, or in the making.
struct Shelved {
    label: Label,
    job: Arc<ReportJob>,
}

/// The outcome of a job; `None` until it has one.
type Made = Option<Result<Arc<KeptReport>, ApiError>>;

/// The making of a report.
struct ReportJob {
    made: watch::Sender<Made>,
    stop: QueryStop,
    /// Those who wait for it.
    waiting: Mutex<usize>,
}

impl ReportJob {
    fn waiting(&self) -> MutexGuard<'_, usize> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for it, too, unless it stops or has failed.
    fn join(self: &Arc<Self>) -> Option<JobWaiter> {
        let mut waiting = self.waiting();
        let is_of_use = match &*self.made.borrow() {
            None => !self.stop.is_stopped(),
            Some(made) => made.is_ok(),
        };
        is_of_use.then(|| {
            *waiting += 1;
            JobWaiter(Arc::clone(self))
        })
    }

    fn kept(&self) -> Option<Arc<KeptReport>> {
        self.made.borrow().as_ref()?.as_ref().ok().cloned()
    }
}

/// Somebody who waits for a job. The last one who leaves stops it.
struct JobWaiter(Arc<ReportJob>);

impl Drop for JobWaiter {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        *waiting -= 1;
        if *waiting == 0 {
            // It does nothing to a job that is done.
            self.0.stop.stop();
        }
    }
}

impl ReportCache {
    pub(crate) fn new(root: &Path, consent: SourceConsent) -> Self {
        ReportCache { source: ReportSource::Recordings(root.to_owned()), consent, reports: Mutex::default(), memory: None }
    }

    /// Reports of the traces of a server, and of the recordings that were pushed to it.
    pub(crate) fn of_server(traces: LiveStore, pushed: PathBuf, view: ServerView, memory: &Arc<MemoryPool>) -> Arc<Self> {
        let source = ReportSource::Served { traces, pushed, view };
        let (consent, reports) = (SourceConsent::default(), Mutex::default());
        let cache = Arc::new(ReportCache { source, consent, reports, memory: Some(Arc::clone(memory)) });
        let weak = Arc::downgrade(&cache);
        memory.on_shortage(move || {
            if let Some(cache) = weak.upgrade() {
                cache.give_up_reports();
            }
        });
        cache
    }

    /// What the page says of its server.
    pub(super) fn server_view(&self) -> ServerView {
        match self.source {
            ReportSource::Recordings(_) => ServerView::default(),
            ReportSource::Served { view, .. } => view,
        }
    }

    /// Whether it may read the source files that a recording names: never on a server, where anybody may have pushed the recording.
    pub(super) fn reads_sources(&self) -> bool {
        matches!(self.source, ReportSource::Recordings(_))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Shelved>> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the reports that are ready and that nobody uses. To forget another one gives no memory back.
    fn give_up_reports(&self) {
        let mut ready = Vec::new();
        let mut reports = self.lock();
        for shelved in std::mem::take(&mut *reports) {
            // Here, and on the shelf.
            let is_idle = shelved.job.kept().is_some_and(|kept| Arc::strong_count(&kept) <= 2);
            if is_idle { ready.push(shelved) } else { reports.push_back(shelved) }
        }
        drop(reports);
        // It takes a while to free them.
        drop(ready);
    }

    /// Forgets the oldest reports while there are too many, or they take too much.
    fn trim(&self) {
        let mut gone = Vec::new();
        let mut reports = self.lock();
        while let Some(at) = first_too_much(&reports) {
            gone.extend(reports.remove(at));
        }
        drop(reports);
        drop(gone);
    }

    /// The job of a report, made the youngest, and whether it is to begin now.
    fn join(&self, label: Label) -> (JobWaiter, bool) {
        let mut reports = self.lock();
        let known = reports.iter().position(|shelved| shelved.label == label).and_then(|at| reports.remove(at));
        let joined = known.and_then(|shelved| shelved.job.join());
        let is_new = joined.is_none();
        let waiting = joined.unwrap_or_else(|| {
            JobWaiter(Arc::new(ReportJob { made: watch::Sender::default(), stop: QueryStop::default(), waiting: Mutex::new(1) }))
        });
        reports.push_front(Shelved { label, job: Arc::clone(&waiting.0) });
        (waiting, is_new)
    }

    /// The report of this label, made once for all who ask for it.
    async fn shared(
        self: &Arc<Self>,
        label: Label,
        make: impl FnOnce(&QueryLimits) -> Result<Report, ApiError> + Send + 'static,
    ) -> Result<Arc<KeptReport>, ApiError> {
        let query = QUERY.try_with(Arc::clone).ok();
        let (mut until, mut place) = (None, None);
        if let Some(query) = &query {
            until = Some(query.begin().await?);
            place = query.give_place().await;
        }
        let (waiting, is_new) = self.join(label);
        if is_new {
            self.begin(&waiting.0, place, make);
        } else {
            drop(place);
        }
        let mut made = waiting.0.made.subscribe();
        let made = made.wait_for(Option::is_some);
        let made = match until {
            None => made.await,
            Some(until) => timeout_at(until, made).await.map_err(|_| {
                query.iter().for_each(|query| query.note_timed_out());
                Unfinished::TimedOut
            })?,
        };
        // Without an outcome its thread ended.
        made.ok().and_then(|made| made.clone()).unwrap_or_else(|| Err(Unfinished::Panicked.into()))
    }

    /// Begins a job, which has this place.
    fn begin(
        self: &Arc<Self>,
        job: &Arc<ReportJob>,
        place: Option<OwnedSemaphorePermit>,
        make: impl FnOnce(&QueryLimits) -> Result<Report, ApiError> + Send + 'static,
    ) {
        let (cache, job) = (Arc::clone(self), Arc::clone(job));
        let memory = self.memory.as_ref().map_or_else(QueryMemory::default, QueryMemory::of);
        let limits = QueryLimits { stop: job.stop.clone(), memory };
        tokio::spawn(async move {
            let work = move || {
                let _place = place;
                let report = make(&limits)?;
                // What it reserved and did not need.
                limits.memory.release_to(limits.memory.bytes());
                let long_text_bytes = long_text_bytes(&report.recording().spans);
                Ok(Arc::new(KeptReport { report, memory: limits.memory, long_text_bytes }))
            };
            let made = tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(Unfinished::Panicked.into()));
            if made.is_err() {
                cache.lock().retain(|shelved| !Arc::ptr_eq(&shelved.job, &job));
            }
            job.made.send_replace(Some(made));
            cache.trim();
        });
    }

    /// The report of `r7`, `7` or `last`, or of a trace by its id, made at the first call.
    pub(crate) async fn report(self: &Arc<Self>, text: &str) -> Result<(ReportName, Arc<KeptReport>), ApiError> {
        match &self.source {
            ReportSource::Recordings(_) => self.report_of_recording(text).await,
            // A trace id has hexadecimal digits only.
            ReportSource::Served { .. } if text.starts_with('r') => self.report_of_recording(text).await,
            ReportSource::Served { traces, .. } => self.report_of_trace(traces, text).await,
        }
    }

    async fn report_of_recording(self: &Arc<Self>, text: &str) -> Result<(ReportName, Arc<KeptReport>), ApiError> {
        let cache = Arc::clone(self);
        let text = text.to_owned();
        let (store, name, label) = off_the_reactor::<_, ApiError>(move || {
            let store = cache.open()?;
            let stored = store.recording(store.resolve(&text)?)?;
            if stored.state == RecordingState::Recording {
                return Err(seal::SealError::Living { name: stored.name }.into());
            }
            Ok((store, stored.name, Label::of(&stored)?))
        })
        .await?;
        let report = self.shared(label, move |limits| Ok(seal::load_within(&store, name, limits)?)).await?;
        Ok((ReportName::Recording(name), report))
    }

    async fn report_of_trace(self: &Arc<Self>, traces: &LiveStore, text: &str) -> Result<(ReportName, Arc<KeptReport>), ApiError> {
        let (text, store) = (text.to_owned(), traces.for_query(query_limits()));
        let (id, extent, profiled) = off_the_reactor::<_, ApiError>(move || {
            let id = trace_id(&text).ok_or_else(|| ApiError::not_found(format!("{text} is not a trace id")))?;
            let extent = store.limits().briefly(|| store.trace_extent(id))?;
            let extent = extent.ok_or_else(|| ApiError::not_found(format!("there is no trace {id}")))?;
            let profiled = store.profile_times().map(|[_, last]| last.min(after(extent.end)));
            Ok((id, extent, profiled))
        })
        .await?;
        let traces = traces.clone();
        let make = move |limits: &QueryLimits| {
            let traces = traces.for_query(limits.clone());
            let spans = traces.trace(id)?;
            // Retention may have removed it meanwhile.
            if spans.is_empty() {
                return Err(ApiError::not_found(format!("there is no trace {id}")));
            }
            let profiles = profiles_of(&traces, &spans)?;
            Ok(import::report_of_trace(id, spans, &profiles, limits)?)
        };
        let report = self.shared(Label::Trace { id, extent, profiled }, make).await?;
        Ok((ReportName::Trace(id), report))
    }

    pub(super) fn open(&self) -> Result<Store, ApiError> {
        match &self.source {
            ReportSource::Recordings(root) | ReportSource::Served { pushed: root, .. } => Ok(Store::open(root)?),
        }
    }

    /// Makes a view of a report, off the reactor: views of large recordings take their time.
    pub(crate) async fn view(
        self: &Arc<Self>,
        recording: &str,
        view: impl FnOnce(ReportName, &Report) -> Answer + Send + 'static,
    ) -> Answer {
        let (name, report) = self.report(recording).await?;
        let limits = query_limits();
        off_the_reactor::<_, ApiError>(move || {
            let _making = limits.hold(view_bytes(report.forest().len() as u64).saturating_add(report.long_text_bytes))?;
            view(name, &report)
        })
        .await
    }

    /// Makes a view of two reports.
    pub(super) async fn view_of_two(
        self: &Arc<Self>,
        before: &str,
        after: &str,
        view: impl FnOnce((String, &Report), (String, &Report)) -> Answer + Send + 'static,
    ) -> Answer {
        let (a_name, a) = self.report(before).await?;
        let (b_name, b) = self.report(after).await?;
        let limits = query_limits();
        off_the_reactor::<_, ApiError>(move || {
            let bytes = |report: &KeptReport| view_bytes(report.forest().len() as u64).saturating_add(report.long_text_bytes);
            let _making = limits.hold(bytes(&a).saturating_add(bytes(&b)))?;
            view((a_name.to_string(), &a), (b_name.to_string(), &b))
        })
        .await
    }

    /// The same of a view that is kept beside a recording. A server keeps none: what others pushed must not grow.
    pub(super) async fn kept_view<V: KeptView + 'static>(
        self: &Arc<Self>,
        recording: &str,
        view: impl FnOnce(ReportName, &Report) -> V + Send + 'static,
    ) -> Answer {
        let ReportSource::Recordings(_) = self.source else {
            return self.view(recording, |name, report| json(&view(name, report))).await;
        };
        let (cache, text) = (Arc::clone(self), recording.to_owned());
        let found = off_the_reactor::<_, ApiError>(move || {
            let store = cache.open()?;
            let name = store.resolve(&text)?;
            Ok(kept::kept::<V>(&store, name).map(|kept| json(&kept)))
        });
        if let Some(answer) = found.await? {
            return answer;
        }
        let cache = Arc::clone(self);
        let made = move |name, report: &_| {
            let made = view(name, report);
            if let (ReportName::Recording(name), Ok(store)) = (name, cache.open()) {
                kept::keep(&store, name, &made);
            }
            json(&made)
        };
        self.view(recording, made).await
    }

    /// The same of a view that has a row for each span.
    pub(super) async fn long_view(
        self: &Arc<Self>,
        recording: &str,
        view: impl FnOnce(ReportName, &Report) -> Answer + Send + 'static,
    ) -> Answer {
        let limits = query_limits();
        let rows_in_memory = move |name, report: &Report| {
            let labels = report.labels();
            let texts: usize = labels.services.iter().chain(labels.names.iter()).map(String::len).sum();
            limits.take(TREE_SPAN_BYTES * report.forest().len() as u64 + texts as u64)?;
            view(name, report)
        };
        self.view(recording, rows_in_memory).await
    }

    /// Answers a query to the store.
    pub(super) async fn store(self: &Arc<Self>, query: impl FnOnce(&Store) -> Answer + Send + 'static) -> Answer {
        let cache = Arc::clone(self);
        off_the_reactor::<_, ApiError>(move || query(&cache.open()?)).await
    }
}

/// The place of the first report that is too much: beyond the number of those that are kept, or beyond their memory.
fn first_too_much(reports: &VecDeque<Shelved>) -> Option<usize> {
    let (mut ready, mut bytes) = (0, 0);
    reports.iter().position(|shelved| {
        let Some(kept) = shelved.job.kept() else { return false };
        (ready, bytes) = (ready + 1, bytes + kept.memory.bytes());
        ready > REPORTS_MAX || ready > 1 && bytes > REPORTS_BYTES_MAX
    })
}

/// How far from the spans that it names a profile may begin: one of a minute is pushed when it is over.
const PROFILE_SLACK_NANOS: i64 = 60_000_000_000;

/// The last time of a profile that may be of spans which end then.
fn after(end: Timestamp) -> Timestamp {
    Timestamp(end.unix_nanos().saturating_add(PROFILE_SLACK_NANOS))
}

/// The CPU time that profiles have of these spans.
fn profiles_of(traces: &LiveStore, spans: &[Span]) -> Result<Vec<ProfilePart<ProfiledSpan>>, StoreError> {
    let ids: HashSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
    let from = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let until = spans.iter().map(|span| span.end).max().unwrap_or_default();
    let is_cpu = |series: &ProfileSeries| &*series.profile_type.name == "process_cpu" && series.profile_type.is_time();
    let filter = ProfileFilter {
        series: &is_cpu,
        from: Timestamp(from.unix_nanos().saturating_sub(PROFILE_SLACK_NANOS)),
        until: after(until),
        spans: Some(&ids),
        traces: None,
    };
    let mut parts = Vec::new();
    traces.each_span_part(&filter, |part| {
        traces.limits().take(part.memory_bytes())?;
        parts.push(part);
        Ok(())
    })?;
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use tokio::time::{Duration, sleep};

    use super::*;

    fn label(rows: u64) -> Label {
        Label::Trace { id: TraceId::new([1; 16]).unwrap(), extent: TraceExtent { rows, end: Timestamp(1) }, profiled: None }
    }

    fn cache() -> Arc<ReportCache> {
        Arc::new(ReportCache::new(Path::new("no-store"), SourceConsent::default()))
    }

    fn report() -> Report {
        Report::new(import::of_trace(Vec::new()))
    }

    #[tokio::test]
    async fn a_report_is_made_once_for_all_who_wait_and_kept() {
        let (cache, made, may_end) = (cache(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let ask = |rows| {
            let (cache, made, may_end) = (Arc::clone(&cache), Arc::clone(&made), Arc::clone(&may_end));
            tokio::spawn(async move {
                let make = move |_: &QueryLimits| {
                    made.fetch_add(1, Ordering::Relaxed);
                    while may_end.load(Ordering::Relaxed) == 0 {
                        thread::yield_now();
                    }
                    Ok(report())
                };
                cache.shared(label(rows), make).await.map_err(|_| ()).unwrap()
            })
        };
        let waiting = [ask(1), ask(1), ask(1)];
        while cache.lock().front().is_none_or(|shelved| *shelved.job.waiting() < 3) {
            tokio::task::yield_now().await;
        }
        may_end.store(1, Ordering::Relaxed);
        let mut reports = Vec::new();
        for asked in waiting {
            reports.push(asked.await.unwrap());
        }
        reports.push(ask(1).await.unwrap());
        assert!(reports.iter().all(|report| Arc::ptr_eq(report, &reports[0])));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        // More spans came.
        ask(2).await.unwrap();
        assert_eq!(made.load(Ordering::Relaxed), 2);
        // One that is in use takes its memory anyway.
        cache.give_up_reports();
        assert_eq!(cache.lock().len(), 1);
        drop(reports);
        cache.give_up_reports();
        assert!(cache.lock().is_empty());
    }

    #[tokio::test]
    async fn the_making_of_a_report_stops_when_the_last_who_waits_leaves() {
        let (cache, stopped) = (cache(), Arc::new(AtomicUsize::new(0)));
        let ask = || {
            let (cache, stopped) = (Arc::clone(&cache), Arc::clone(&stopped));
            tokio::spawn(async move {
                let make = move |limits: &QueryLimits| {
                    while !limits.stop.is_stopped() {
                        thread::yield_now();
                    }
                    stopped.fetch_add(1, Ordering::Relaxed);
                    Err(StoreError::Stopped.into())
                };
                cache.shared(label(1), make).await.map(drop)
            })
        };
        let (first, second) = (ask(), ask());
        while cache.lock().front().is_none_or(|shelved| *shelved.job.waiting() < 2) {
            tokio::task::yield_now().await;
        }
        first.abort();
        sleep(Duration::from_millis(50)).await;
        assert_eq!(stopped.load(Ordering::Relaxed), 0, "another one waits");
        second.abort();
        while stopped.load(Ordering::Relaxed) == 0 || !cache.lock().is_empty() {
            sleep(Duration::from_millis(1)).await;
        }
        // A query that comes later has a job of its own.
        assert!(cache.shared(label(1), |_| Ok(report())).await.is_ok());
    }
}
