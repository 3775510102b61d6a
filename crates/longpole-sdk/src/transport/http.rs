//! OTLP over blocking HTTP, for a plain thread.

use std::time::Duration;

use super::answer::{Answer, USER_AGENT};
use crate::config::{ExportConfig, TlsFiles};
use crate::encode;

/// A collector's answer to spans is a few bytes; more is not read.
const MAX_RESPONSE_BYTES: u64 = 64 << 10;

/// Blocking HTTP, whose phases end by themselves.
pub(crate) struct Http {
    agent: ureq::Agent,
    url: String,
    headers: Vec<(String, String)>,
}

/// A client that talks to a collector and nobody else; `tls` for an address that begins with `https`.
pub(crate) fn agent(tls: Option<&TlsFiles>) -> Result<ureq::Agent, String> {
    let client = ureq::Agent::config_builder()
        .http_status_as_error(false)
        // A collector is on this machine or beside it; a proxy for the web is not on the way.
        .proxy(None)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .max_idle_connections(1)
        .user_agent(USER_AGENT)
        .build();
    #[cfg(feature = "tls")]
    if let Some(files) = tls {
        return super::tls::http_agent(client, files);
    }
    #[cfg(not(feature = "tls"))]
    let _ = tls;
    Ok(client.new_agent())
}

/// A request with this limit for each of its phases. No total timeout, nor one for the name: ureq would start a thread per
/// request to enforce it.
pub(crate) fn post<T>(agent: &ureq::Agent, uri: T, timeout: Option<Duration>) -> ureq::RequestBuilder<ureq::typestate::WithBody>
where
    ureq::http::Uri: TryFrom<T>,
    <ureq::http::Uri as TryFrom<T>>::Error: Into<ureq::http::Error>,
{
    agent
        .post(uri)
        .config()
        .timeout_connect(timeout)
        .timeout_send_request(timeout)
        .timeout_send_body(timeout)
        .timeout_recv_response(timeout)
        .timeout_recv_body(timeout)
        .build()
}

impl Http {
    pub(super) fn new(config: &ExportConfig) -> Result<Self, String> {
        Ok(Self { agent: agent(config.tls.as_ref())?, url: config.url.clone(), headers: config.headers.clone() })
    }

    pub(super) fn send(&self, body: &[u8], timeout: Option<Duration>) -> Answer {
        let mut request = post(&self.agent, &self.url, timeout).header("content-type", "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let mut response = match request.send(body) {
            Ok(response) => response,
            Err(error) => return Answer::NotNow { why: error.to_string(), pause: None },
        };
        let status = response.status().as_u16();
        let pause =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok()).map(Duration::from_secs);
        // Read to its end, the connection can be used again. The status has decided already.
        let body = response.body_mut().with_config().limit(MAX_RESPONSE_BYTES).read_to_vec().unwrap_or_default();
        match status {
            200..=299 => Answer::Accepted { rejected: encode::rejected_spans(&body) },
            // The statuses that OTLP says may be repeated.
            429 | 502 | 503 | 504 => Answer::NotNow { why: format!("status {status}"), pause },
            _ => Answer::Refused { why: format!("status {status}") },
        }
    }
}
