//! `/longpole/v1/traces/poles`: what to fix first in the traces that a search finds, and what their requests would gain.

use std::time::{Duration, Instant};

use axum::extract::RawQuery;
use longpole_analysis::many_traces::ManyTraces;
use longpole_recording::import;
use longpole_recording::view::SharedPolesView;
use longpole_store::StoreError;
use longpole_store::live::{LiveStore, TraceSummary};

use super::jaeger::filter_of_page;
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use crate::api::{Answer, json};
use crate::off_the_reactor::off_the_reactor;
use crate::query_parameters::Parameters;

/// Traces without `limit`, and at most: enough for a 99th percentile.
const LIMIT: usize = 2_000;
const LIMIT_MAX: usize = 5_000;

/// How long they are read. Then the answer is of fewer, and says so.
const TIME_MAX: Duration = Duration::from_secs(10);

/// A larger trace is no request of a service: it has an answer of its own.
const SPANS_MAX: u32 = 20_000;

pub(super) async fn shared_poles(QueriedStore(store): QueriedStore, RawQuery(query): RawQuery) -> Answer {
    let found = move || {
        let parameters = Parameters::of(query.as_deref())?;
        let (filter, limit) = (filter_of_page(&parameters)?, parameters.limit(LIMIT, LIMIT_MAX)?);
        let found = store.find(&filter, limit + 1)?;
        let (mut many, mut read, mut left_out) = (ManyTraces::default(), 0, 0);
        let begun = Instant::now();
        for trace in found.iter().take(limit) {
            if begun.elapsed() > TIME_MAX {
                break;
            }
            read += 1;
            left_out += usize::from(!add(&store, &mut many, trace)?);
        }
        Ok(SharedPolesView::new(&many.operations(), (read - left_out, found.len() > read, left_out)))
    };
    json(&off_the_reactor::<_, QueryError>(found).await?)
}

/// Adds the critical path of a trace, whose spans are gone then. Returns false for one that is too large: it must not take the answer of all
/// others away.
fn add(store: &LiveStore, many: &mut ManyTraces, trace: &TraceSummary) -> Result<bool, StoreError> {
    if trace.spans > SPANS_MAX {
        return Ok(false);
    }
    let (limits, before) = (store.limits(), many.bytes());
    let added = limits.briefly(|| {
        let report = store.trace(trace.trace_id).and_then(|spans| import::report_of_trace(trace.trace_id, spans, &[], limits));
        match report {
            Ok(report) => {
                many.add(trace.trace_id, (&trace.root_service, &trace.root_name), &report);
                Ok(true)
            }
            Err(StoreError::TraceTooLarge { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    })?;
    limits.take((many.bytes() - before) as u64)?;
    Ok(added)
}
