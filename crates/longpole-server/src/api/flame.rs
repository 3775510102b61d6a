//! `/api/recordings/{rec}/flame?span={handle}&name={name}&trace={id}&time={on_cpu|off_cpu|wall}&threads={all}&from={nanos}&to={nanos}&thread={tid}`:
//! the flame graph of a span, of a pole, of all spans of a name or a trace, or of the whole run; of all of it, or of a range of time and a thread.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use longpole_analysis::report::FlameTime;
use serde::Deserialize;

use super::excerpt::ExcerptParameters;
use super::{Answer, ApiError, ReportCache, json};
use longpole_recording::view::{Chosen, FlameView};

#[derive(Deserialize)]
pub(super) struct Parameters {
    span: Option<String>,
    name: Option<String>,
    trace: Option<String>,
    time: Option<String>,
    threads: Option<String>,
}

impl Parameters {
    /// The selections of spans that the query makes; it may make one at most.
    fn chosen(&self) -> Vec<Chosen<'_>> {
        let handle = self.span.as_deref().map(Chosen::Handle);
        let name = self.name.as_deref().map(Chosen::Name);
        let trace = self.trace.as_deref().map(Chosen::Trace);
        [handle, name, trace].into_iter().flatten().collect()
    }
}

pub(super) async fn get(
    State(cache): State<Arc<ReportCache>>,
    Path(recording): Path<String>,
    Query(parameters): Query<Parameters>,
    Query(excerpt): Query<ExcerptParameters>,
) -> Answer {
    let bad = |message: String| ApiError::new(StatusCode::BAD_REQUEST, "bad_request", message);
    let time = match parameters.time.as_deref() {
        None => FlameTime::default(),
        Some(word) => FlameTime::from_word(word)
            .ok_or_else(|| bad(format!("`{word}` is not a time of a flame graph: use on_cpu, off_cpu or wall")))?,
    };
    let chosen = parameters.chosen().len();
    if chosen > 1 {
        return Err(bad("give only one of `span`, `name` and `trace`".to_owned()));
    }
    let all_threads = match parameters.threads.as_deref() {
        None => false,
        Some("all") if chosen == 0 => true,
        Some(_) => return Err(bad("`threads` can only be `all`, and only for the whole run".to_owned())),
    };
    let view = move |name, report: &_| {
        let excerpt = excerpt.excerpt(report)?;
        match parameters.chosen().first() {
            None => json(&FlameView::of_run(name, report, time, all_threads, excerpt)),
            Some(chosen) => match FlameView::of_spans(name, report, *chosen, time, excerpt) {
                Some(view) => json(&view),
                None => Err(ApiError::no_handle(name, &chosen.to_string())),
            },
        }
    };
    cache.view(&recording, view).await
}
