//! `/api/recordings/{rec}/frames/{handle}`: one function, by `f12`, and where it ran; and `/source`, its lines.

use std::sync::Arc;

use axum::extract::{Path, State};
use longpole_analysis::Report;

use super::{Answer, ApiError, ReportCache, ReportName, json};
use longpole_recording::source_file::{Origin, SourceAccess};
use longpole_recording::view::{FrameView, SourceView};

pub(super) async fn get(State(cache): State<Arc<ReportCache>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let view = move |name, report: &_| match FrameView::new(name, report, &handle) {
        Some(view) => json(&view),
        None => Err(ApiError::no_handle(name, &handle)),
    };
    cache.view(&recording, view).await
}

pub(super) async fn source(State(cache): State<Arc<ReportCache>>, Path((recording, handle)): Path<(String, String)>) -> Answer {
    let of = Arc::clone(&cache);
    let view = move |name, report: &Report| {
        let access = match name {
            ReportName::Recording(name) if of.reads_sources() => {
                let stored = of.open()?.recording(name)?;
                let origin = Origin::of(&stored, &report.recording().run);
                Some(SourceAccess { origin, consent: of.consent.clone() })
            }
            // Its spans, or all of it, come from anybody and name any file.
            ReportName::Recording(_) | ReportName::Trace(_) => None,
        };
        match SourceView::new(name, report, &handle, access.as_ref()) {
            Some(view) => json(&view),
            None => Err(ApiError::no_handle(name, &handle)),
        }
    };
    cache.view(&recording, view).await
}
