//! Asks a server: one request of its HTTP API.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full, Limited};
use tokio::time::timeout;

use crate::forward::client;
use crate::forward::target::ForwardTls;

/// Bytes of an answer: a trace of a million spans.
const ANSWER_BYTES_MAX: usize = 1 << 30;

/// Bytes of an answer to what is posted, which says little more than that it arrived.
const POST_ANSWER_BYTES_MAX: usize = 64 << 10;

/// How long a server may take for what is posted: whoever posts sends more, and has to end some time.
const POST_PATIENCE: Duration = Duration::from_secs(20);

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a server does not answer, as a fragment behind its address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// Not an address.
    #[error("not an address of http or https")]
    Address,
    /// Nobody is there, or somebody who does not speak HTTP.
    #[error("{0}")]
    Failed(String),
    /// The token cannot stand in a header.
    #[error("the token has characters that no token has")]
    Token,
    /// It takes too long.
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
}

/// Gets an address, with a token if the server needs one.
///
/// # Errors
///
/// [`NoAnswer`] if no whole answer comes. An answer that says so is an answer.
pub fn get(address: &str, token: Option<&str>) -> Result<ServerAnswer, NoAnswer> {
    send(Method::GET, address, token, None, Bytes::new())
}

/// Puts this there.
///
/// # Errors
///
/// As of [`get`].
pub fn put(address: &str, token: Option<&str>, body: Vec<u8>) -> Result<ServerAnswer, NoAnswer> {
    send(Method::PUT, address, token, None, body.into())
}

/// Posts this there.
///
/// # Errors
///
/// As of [`get`].
pub fn post(address: &str, token: Option<&str>, media_type: &'static str, body: Vec<u8>) -> Result<ServerAnswer, NoAnswer> {
    send(Method::POST, address, token, Some(media_type), body.into())
}

fn send(
    method: Method,
    address: &str,
    token: Option<&str>,
    media_type: Option<&'static str>,
    body: Bytes,
) -> Result<ServerAnswer, NoAnswer> {
    let is_post = method == Method::POST;
    let patience = if is_post { POST_PATIENCE } else { PATIENCE };
    let uri: Uri = address.parse().map_err(|_| NoAnswer::Address)?;
    let https = match uri.scheme_str() {
        Some("https") => true,
        Some("http") if uri.host().is_some() => false,
        _ => return Err(NoAnswer::Address),
    };
    let authorization = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}"))).transpose().map_err(|_| NoAnswer::Token)?;
    let host = uri.host().unwrap_or_default().to_owned();
    let failed = |error: &(dyn Error + 'static)| NoAnswer::Failed(reason(error, &host));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| failed(&error))?;
    let answer = async {
        let client = client::new(https, false, ForwardTls::default()).await.map_err(NoAnswer::Failed)?;
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header(ACCEPT, HeaderValue::from_static("application/json"))
            .header(USER_AGENT, client::AGENT)
            .body(Full::new(body))
            .map_err(|error| failed(&error))?;
        request.headers_mut().extend(authorization.map(|value| (AUTHORIZATION, value)));
        request.headers_mut().extend(media_type.map(|media_type| (CONTENT_TYPE, HeaderValue::from_static(media_type))));
        let response = client.request(request).await.map_err(|error| failed(&error))?;
        let status = response.status().as_u16();
        let most = if is_post { POST_ANSWER_BYTES_MAX } else { ANSWER_BYTES_MAX };
        let body = Limited::new(response.into_body(), most).collect().await;
        let body = body.map_err(|error| failed(&*error))?;
        Ok(ServerAnswer { status, body: body.to_bytes().to_vec() })
    };
    let answer = runtime.block_on(async { timeout(patience, answer).await.unwrap_or(Err(NoAnswer::TooSlow(patience))) });
    runtime.shutdown_background();
    answer
}

/// What hyper's connector calls the failure to resolve a name.
const NOT_RESOLVED: &str = "dns error";

/// The cause that says most: `Connection refused` and not "client error".
pub(crate) fn reason(error: &(dyn Error + 'static), host: &str) -> String {
    let causes = || std::iter::successors(Some(error), |&error| error.source()).map(ToString::to_string);
    let innermost = causes().last().unwrap_or_default();
    if causes().any(|cause| cause == NOT_RESOLVED) {
        // What resolved it, and why it could not.
        let why = innermost.rsplit_once(": ").map_or(innermost.as_str(), |(_, why)| why);
        return format!("failed to resolve the host {host}: {why}");
    }
    innermost
}
