//! Queries by gRPC: Jaeger's query service, versions 3 and 2, and its sampling service. All of them are answered at each of their ports.

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use http::StatusCode;
use longpole_model::Span;
use longpole_store::live::{LiveStore, SpanFilter};
use longpole_wire::jaeger_query::{self, SummaryMessage, TraceQuery};
use longpole_wire::{DecodeError, jaeger, json_bytes, otlp};

use super::jaeger::{calls, one_trace, service_names, take_error};
use super::jaeger_v3::{Summary, TraceSearch, depth_of, operations_of};
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use super::question::{self, QUESTION_BYTES_MAX, QuestionError};
use super::sampling::Strategies;
use crate::off_the_reactor::{Unfinished, off_the_reactor};
use crate::otlp_request::grpc::code;
use crate::otlp_request::grpc_call::{Refusal, check_message_type, compression_of, not_a_call, respond_with_all, unframe};
use crate::otlp_request::{Compression, inflate_up_to};

/// Bytes of a message, about, unless one span has more: clients take 4 MiB at once.
const MESSAGE_BYTES: u64 = 2 << 20;

/// The buffer that a message is written to doubles as it grows, and a span may be in it a second time meanwhile.
const ENCODING_FACTOR: u64 = 3;

/// What a method answers: messages, one after the other.
type Messages = Result<Vec<Vec<u8>>, QueryError>;

pub(super) fn routes(store: LiveStore, strategies: Strategies) -> Router {
    // `any`: a call that is no POST has an answer of its own.
    let query = |method: fn(&LiveStore, &[u8]) -> Messages| {
        any(move |QueriedStore(store): QueriedStore, request: Request| call(request, move |question| method(&store, question)))
    };
    let path = |method: &str| format!("/jaeger.api_v3.QueryService/{method}");
    let path_v2 = |method: &str| format!("/jaeger.api_v2.QueryService/{method}");
    Router::new()
        .route(&path_v2("GetServices"), query(services))
        .route(&path_v2("GetOperations"), query(operations_v2))
        .route(&path_v2("GetTrace"), query(trace_v2))
        .route(&path_v2("FindTraces"), query(traces_v2))
        .route(&path_v2("GetDependencies"), query(dependencies))
        .route(&path("GetServices"), query(services))
        .route(&path("GetOperations"), query(operations))
        .route(&path("GetTrace"), query(trace))
        .route(&path("FindTraces"), query(traces))
        .route(&path("FindTraceSummaries"), query(summaries))
        .route(&path("GetDependencies"), query(dependencies))
        .route(
            "/jaeger.api_v2.SamplingManager/GetSamplingStrategy",
            any(move |request: Request| {
                let strategies = strategies.clone();
                call(request, move |question| {
                    let service = jaeger_query::sampling_request(question)?;
                    Ok(vec![jaeger_query::sampling_response(&strategies.of(&service))])
                })
            }),
        )
        .route("/grpc.health.v1.Health/Check", any(async |request: Request| call(request, |_| Ok(vec![SERVING.to_vec()])).await))
        .with_state(store)
}

/// `HealthCheckResponse` of a server that serves.
const SERVING: [u8; 2] = [0x08, 1];

/// Answers one call.
pub(super) async fn call(request: Request, method: impl FnOnce(&[u8]) -> Messages + Send + 'static) -> Response {
    if let Some(answer) = not_a_call(&request) {
        return answer.into_response();
    }
    respond_with_all(answer(request, method).await).into_response()
}

async fn answer(request: Request, method: impl FnOnce(&[u8]) -> Messages + Send + 'static) -> Result<Vec<Vec<u8>>, Refusal> {
    let (head, body) = request.into_parts();
    check_message_type(&head.headers)?;
    let compression = compression_of(&head.headers)?;
    drop(head);
    let body = question::read(body).await.map_err(|error| match error {
        QuestionError::Cut => Refusal::new(code::RESOURCE_EXHAUSTED, error.to_string()).retry_after(1),
        QuestionError::Late => Refusal::new(code::DEADLINE_EXCEEDED, error.to_string()),
        QuestionError::Unreadable(_) => Refusal::new(code::RESOURCE_EXHAUSTED, error.to_string()),
    })?;
    let (is_compressed, message) = unframe(&body)?;
    let compression = if is_compressed { compression } else { Compression::Identity };
    let message = inflate_up_to(&message, compression, QUESTION_BYTES_MAX);
    let message = message.map_err(|error| Refusal::new(code::INVALID_ARGUMENT, error.to_string()))?.into_owned();
    off_the_reactor::<_, QueryError>(move || method(&message)).await.map_err(|error| {
        let code = match error.status() {
            StatusCode::BAD_REQUEST => code::INVALID_ARGUMENT,
            StatusCode::NOT_FOUND => code::NOT_FOUND,
            StatusCode::UNPROCESSABLE_ENTITY => code::RESOURCE_EXHAUSTED,
            _ => match error {
                QueryError::Unfinished(Unfinished::TimedOut) => code::DEADLINE_EXCEEDED,
                _ if error.may_come_again() => code::RESOURCE_EXHAUSTED,
                _ => code::INTERNAL,
            },
        };
        let refusal = Refusal::new(code, error.to_string());
        // Without it a client takes it that no later call is answered either.
        if error.may_come_again() { refusal.retry_after(1) } else { refusal }
    })
}

impl From<DecodeError> for QueryError {
    fn from(error: DecodeError) -> Self {
        QueryError::Bad(error.to_string())
    }
}

fn services(store: &LiveStore, _: &[u8]) -> Messages {
    Ok(vec![jaeger_query::services_response(service_names(store)?.iter().map(String::as_str))])
}

fn operations(store: &LiveStore, question: &[u8]) -> Messages {
    let (service, kind) = jaeger_query::operations_request(question)?;
    let operations = operations_of(store, &service, kind.as_deref())?;
    Ok(vec![jaeger_query::operations_response(operations.iter().map(|(name, kind)| (name.as_str(), *kind)))])
}

fn operations_v2(store: &LiveStore, question: &[u8]) -> Messages {
    let (service, kind) = jaeger_query::operations_request(question)?;
    let operations = operations_of(store, &service, kind.as_deref())?;
    Ok(vec![jaeger_query::operations_response_v2(operations.iter().map(|(name, kind)| (name.as_str(), *kind)))])
}

fn trace_v2(store: &LiveStore, question: &[u8]) -> Messages {
    let spans = one_trace(store, &jaeger_query::trace_request_v2(question)?)?;
    chunks_v2(store, &spans)
}

fn traces_v2(store: &LiveStore, question: &[u8]) -> Messages {
    let spans = search_of(jaeger_query::find_request(question)?).traces(store)?.all_spans()?;
    chunks_v2(store, &spans)
}

/// What Jaeger's spans cannot hold is in version 3.
fn chunks_v2(store: &LiveStore, spans: &[Span]) -> Messages {
    chunks(store, spans, |chunk| jaeger::encode_spans(chunk).0)
}

/// Spans as messages. Each takes memory of the query: a span of version 2 repeats its resource.
fn chunks(store: &LiveStore, spans: &[Span], encode: impl Fn(&[Span]) -> Vec<u8>) -> Messages {
    let (mut messages, mut rest) = (Vec::new(), spans);
    while !rest.is_empty() {
        store.limits().check()?;
        // As JSON a span takes more. Alone it counts with its resource, which version 2 repeats.
        let bytes_of = |span: &Span| json_bytes(std::slice::from_ref(span));
        let (mut bytes, mut count) = (0, 0);
        while let Some(span) = rest.get(count)
            && (count == 0 || bytes + bytes_of(span) <= MESSAGE_BYTES)
        {
            (bytes, count) = (bytes + bytes_of(span), count + 1);
        }
        let (chunk, behind) = rest.split_at(count);
        let encoding = store.limits().hold(ENCODING_FACTOR.saturating_mul(bytes))?;
        let mut message = encode(chunk);
        message.shrink_to_fit();
        drop(encoding);
        store.limits().take(message.capacity() as u64)?;
        messages.push(message);
        rest = behind;
    }
    Ok(messages)
}

fn trace(store: &LiveStore, question: &[u8]) -> Messages {
    let spans = one_trace(store, &jaeger_query::trace_request(question)?)?;
    chunks(store, &spans, otlp::encode_trace)
}

fn traces(store: &LiveStore, question: &[u8]) -> Messages {
    let spans = search(question)?.traces(store)?.all_spans()?;
    chunks(store, &spans, otlp::encode_trace)
}

fn summaries(store: &LiveStore, question: &[u8]) -> Messages {
    let mut summaries = Vec::new();
    for found in search(question)?.found(store)? {
        summaries.push(Summary::read(store, &found)?);
    }
    let message = |summary: &'_ Summary| {
        let counts = [summary.spans, summary.errors, summary.orphans].map(|count| count as u64);
        let services = summary.services.iter().map(|(name, counts)| (name.as_str(), counts.map(|count| count as u64))).collect();
        jaeger_query::summaries_response([SummaryMessage {
            trace_id: summary.trace_id.clone(),
            root: [&summary.root_service, &summary.root_name],
            start: summary.start,
            end: summary.end,
            counts,
            services,
        }])
    };
    // Messages of one field after another are one message.
    Ok(vec![summaries.iter().flat_map(message).collect()])
}

fn dependencies(store: &LiveStore, question: &[u8]) -> Messages {
    let [Some(from), Some(until)] = jaeger_query::dependencies_request(question)? else {
        return Err("start_time and end_time are required".into());
    };
    let calls = calls(store, from, until)?;
    let rows = calls.iter().map(|((parent, child), count)| (parent.as_str(), child.as_str(), *count));
    Ok(vec![jaeger_query::dependencies_response(rows)])
}

fn search(question: &[u8]) -> Result<TraceSearch, QueryError> {
    let query = jaeger_query::find_request(question)?;
    if query.has_filter {
        return Err("query.filter: structured filters are not supported; use service_name, attributes and the like".into());
    }
    if query.from.is_none() || query.until.is_none() {
        return Err("start_time_min and start_time_max are required".into());
    }
    Ok(search_of(query))
}

fn search_of(mut query: TraceQuery) -> TraceSearch {
    let is_error = take_error(&mut query.attributes);
    let filter = SpanFilter {
        service: query.service,
        name: query.name,
        attributes: query.attributes,
        keys: Vec::new(),
        min_nanos: query.min_nanos,
        max_nanos: query.max_nanos,
        is_error,
        from: query.from,
        until: query.until,
        ..SpanFilter::default()
    };
    TraceSearch { filter, depth: depth_of(query.depth) }
}
