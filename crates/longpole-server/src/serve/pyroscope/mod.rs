//! The queries of Pyroscope: `querier.v1.QuerierService` by the Connect protocol and gRPC, and its older `/render`.
//!
//! | | |
//! |---|---|
//! | `ProfileTypes`, `LabelNames`, `LabelValues`, `Series` | what there is |
//! | `SelectMergeStacktraces`, `SelectMergeSpanProfile`, `Diff` | flame graphs |
//! | `SelectMergeProfile` | the same as pprof |
//! | `SelectSeries`, `SelectHeatmap` | values over time |
//! | `GetProfileStats`, `AnalyzeQuery` | how much there is |
//!
//! A range of 0 to 0 is all there is. Where nothing matches, an answer is empty, and no error.

mod answers;
mod methods;
mod render;

use axum::Router;
use axum::extract::{Path, Request};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use longpole_store::live::LiveStore;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::querier::{QuerierMethod, SERVICE};

use super::grpc_queries;
use super::query_error::QueryError;
use super::query_turns::QueriedStore;
use super::question::{self, QuestionError};
use crate::connect_protocol::{self, codec_of};
use crate::off_the_reactor::off_the_reactor;
use crate::otlp_request::grpc_call;

pub(super) fn routes(store: LiveStore) -> Router {
    Router::new()
        .route(&format!("{SERVICE}{{method}}"), post(method))
        .route("/render", get(render::one))
        .route("/pyroscope/render", get(render::one))
        .route("/render-diff", get(render::two))
        .route("/pyroscope/render-diff", get(render::two))
        .route("/label-values", get(render::label_values))
        .route("/pyroscope/label-values", get(render::label_values))
        .route("/ready", get(async || "ready\n"))
        .with_state(store)
}

/// Answers one call of a method.
async fn method(QueriedStore(store): QueriedStore, Path(name): Path<String>, request: Request) -> Response {
    let method = QuerierMethod::of_name(&name);
    if grpc_call::is_grpc(&request) {
        let call = move |query: &[u8]| {
            let method = method.ok_or_else(|| QueryError::NotFound(format!("unknown method {name}")))?;
            Ok(vec![methods::answer(&store, method, query, Codec::Protobuf)?])
        };
        return grpc_queries::call(request, call).await;
    }
    let Some(method) = method else {
        return refused(StatusCode::NOT_FOUND, &format!("unknown method {name}"));
    };
    let (head, body) = request.into_parts();
    let Some(codec) = codec_of_head(&head.headers) else {
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, "expected the content type application/proto or application/json");
    };
    let query = match question::read(body).await {
        Ok(query) => query,
        Err(error) => {
            let status = match error {
                QuestionError::Cut => StatusCode::SERVICE_UNAVAILABLE,
                QuestionError::Late => StatusCode::REQUEST_TIMEOUT,
                QuestionError::Unreadable(_) => StatusCode::PAYLOAD_TOO_LARGE,
            };
            return refused(status, &error.to_string());
        }
    };
    let answered = off_the_reactor::<_, QueryError>(move || methods::answer(&store, method, &query, codec)).await;
    match answered {
        Ok(body) => ([(CONTENT_TYPE, connect_protocol::media_type(codec))], body).into_response(),
        Err(error) => refused(error.status(), &error.to_string()),
    }
}

fn codec_of_head(head: &HeaderMap) -> Option<Codec> {
    codec_of(head.get(CONTENT_TYPE)?.to_str().ok())
}

/// An error as the Connect protocol writes it.
fn refused(status: StatusCode, message: &str) -> Response {
    (status, [(CONTENT_TYPE, connect_protocol::media_type(Codec::Json))], connect_protocol::error_body(status, message)).into_response()
}
