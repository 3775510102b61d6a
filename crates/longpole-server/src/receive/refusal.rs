//! Requests that the receiver refuses before it reads their bodies, and the answers to them.
//!
//! A web page of any site can send to loopback. Its requests have `Origin` or `Sec-Fetch-Site`, which no page can omit or change. A page
//! whose name resolves to 127.0.0.1 (DNS rebinding) has that name in `Host`. Exporters send neither.

use http::header::{HOST, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER};
use http::uri::Authority;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;

use super::otlp_http;
use crate::answer::AnswerBody;
use crate::auth::is_loopback;
use crate::otlp_request::grpc::code;
use crate::otlp_request::grpc_call;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The answer to a process of another user.
const OTHER_USER: &str = "this receiver accepts spans of one run only, and this process belongs to another user, not to the run";

/// Why the receiver refuses a request, whatever its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Objection {
    /// The reason in the answer to its client.
    pub(super) reason: String,
    /// The reason in the recording, without any text of the sender, which is a web page.
    pub(super) kind: &'static str,
}

/// The loss of requests for another name that resolves to 127.0.0.1.
const OTHER_HOST: &str = "requests for another host than 127.0.0.1, localhost or [::1]";

/// The loss of requests of web pages.
const WEB_PAGE: &str = "requests of web pages, which may not send spans";

/// Why the receiver refuses this request, whatever its body.
pub(super) fn objection(request: &Request<Incoming>, any_host: bool, is_listed_page: bool) -> Option<Objection> {
    if is_listed_page {
        return objection_of_host(request, any_host);
    }
    objection_to(request.uri(), request.headers(), any_host)
}

/// Why the receiver refuses a query: pages of its own may ask it, others cannot read the answers.
pub(super) fn objection_of_host(request: &Request<Incoming>, any_host: bool) -> Option<Objection> {
    other_host(request.uri(), request.headers()).filter(|_| !any_host)
}

/// Why the receiver refuses a query of a web page that is not its own: no page of another site may make it work.
pub(super) fn objection_of_page(request: &Request<Incoming>) -> Option<Objection> {
    let headers = request.headers();
    let hosts =
        || headers.get_all(HOST).into_iter().filter_map(|host| host.to_str().ok()).chain(request.uri().authority().map(Authority::as_str));
    let is_own = |origin: &str| {
        let host = origin.split_once("://").map_or("", |(_, host)| host);
        hosts().any(|own| own.eq_ignore_ascii_case(host))
    };
    let foreign = headers.get_all(ORIGIN).into_iter().find(|origin| !origin.to_str().is_ok_and(is_own));
    if let Some(origin) = foreign {
        let reason = format!("origin {}: web pages of others may not ask", shown(origin.as_bytes()));
        return Some(Objection { reason, kind: WEB_PAGE });
    }
    // A link to a page of ours is followed.
    let is_navigation = headers.get("sec-fetch-mode").is_some_and(|mode| mode.as_bytes() == b"navigate");
    let site = headers.get(SEC_FETCH_SITE).filter(|site| !matches!(site.as_bytes(), b"none" | b"same-origin"))?;
    let reason = format!("sec-fetch-site {}: web pages of others may not ask", shown(site.as_bytes()));
    (!is_navigation).then_some(Objection { reason, kind: WEB_PAGE })
}

fn objection_to(uri: &Uri, headers: &HeaderMap, any_host: bool) -> Option<Objection> {
    if let Some(objection) = other_host(uri, headers).filter(|_| !any_host) {
        return Some(objection);
    }
    if let Some(origin) = headers.get(ORIGIN) {
        let reason = format!("origin {}: web pages may not send spans", shown(origin.as_bytes()));
        return Some(Objection { reason, kind: WEB_PAGE });
    }
    let site = headers.get(SEC_FETCH_SITE).filter(|site| site.as_bytes() != b"none")?;
    let reason = format!("sec-fetch-site {}: web pages may not send spans", shown(site.as_bytes()));
    Some(Objection { reason, kind: WEB_PAGE })
}

fn other_host(uri: &Uri, headers: &HeaderMap) -> Option<Objection> {
    // HTTP/2 has `:authority`, which stands in the address, and proxies write a whole address.
    let mut hosts: Vec<&[u8]> = headers.get_all(HOST).into_iter().map(|host| host.as_bytes()).collect();
    hosts.extend(uri.authority().map(|authority| authority.as_str().as_bytes()));
    let is_ours = |host: &&[u8]| std::str::from_utf8(host).is_ok_and(|host| host.parse::<Authority>().is_ok_and(|host| is_loopback(&host)));
    let host = hosts.iter().find(|host| !is_ours(host))?;
    let reason = format!("host {}: expected 127.0.0.1, localhost or [::1]", shown(host));
    Some(Objection { reason, kind: OTHER_HOST })
}

/// The beginning of a header's value, text only.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(SHOWN_BYTES_MAX)]).chars().filter(|c| !c.is_control()).collect()
}

/// Bytes of a header that a refusal quotes. Names of hosts have up to 253.
const SHOWN_BYTES_MAX: usize = 256;

/// The answer to a refused request.
pub(super) fn refuse(request: &Request<Incoming>, reason: &str) -> Response<AnswerBody> {
    if grpc_call::is_grpc(request) {
        return grpc_call::respond(Err(grpc_call::Refusal::new(code::PERMISSION_DENIED, reason)));
    }
    otlp_http::refuse(request, StatusCode::FORBIDDEN, code::PERMISSION_DENIED, reason)
}

/// The answer while the kernel does not name the owner of a connection.
pub(super) fn owner_unknown(request: &Request<Incoming>) -> Response<AnswerBody> {
    try_again(request, OWNER_UNKNOWN)
}

/// The loss of connections whose owner the kernel did not name.
pub(super) const OWNER_UNKNOWN: &str =
    "connections whose owner the kernel could not name, for lack of descriptors or memory; the client may try again";

/// The loss of connections whose user number stands for several users.
pub(super) const UNMAPPED_USERS: &str =
    "connections of users that this user namespace does not distinguish, from processes that do not belong to the run";

/// The answer to a process of another user whose connection was not checked.
pub(super) fn unchecked(request: &Request<Incoming>) -> Response<AnswerBody> {
    try_again(request, UNCHECKED)
}

/// The loss of connections of other users that were not checked.
pub(super) const UNCHECKED: &str =
    "connections of other users that arrived faster than longpole could check whether they belong to the run; clients may try again";

/// The loss of connections that the kernel could not watch.
pub(super) const NO_MEMORY: &str = "connections for which the kernel had no memory; clients may try again";

/// The loss of connections that the receiver never saw.
pub(super) const DROPPED: &str =
    "attempts to connect that the kernel dropped, because more connections waited than it keeps; clients may have tried again";

/// The loss of connections that came too late for a check.
pub(super) const TOO_LATE: &str = "connections that unknown processes made after the command had ended";

fn try_again(request: &Request<Incoming>, why: &str) -> Response<AnswerBody> {
    if grpc_call::is_grpc(request) {
        return grpc_call::respond(Err(grpc_call::Refusal::new(code::UNAVAILABLE, why)));
    }
    let mut response = otlp_http::refuse(request, StatusCode::SERVICE_UNAVAILABLE, code::UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The answer to a process of another user.
pub(super) fn other_user(request: &Request<Incoming>) -> Response<AnswerBody> {
    refuse(request, OTHER_USER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(uri: &str, headers: &[(&'static str, &'static str)], expected: Option<&str>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        let found = objection_to(&uri.parse().unwrap(), &map, false);
        match expected {
            None => assert_eq!(found, None, "{uri} {headers:?}"),
            Some(part) => assert!(found.as_ref().is_some_and(|found| found.reason.starts_with(part)), "{uri} {headers:?}: {found:?}"),
        }
    }

    #[test]
    fn exporters_are_taken_and_web_pages_are_not() {
        for host in ["127.0.0.1", "127.0.0.1:4318", "localhost:4318", "LocalHost", "[::1]:1"] {
            check("/v1/traces", &[("host", host)], None);
        }
        check("http://127.0.0.1:4318/v1/traces", &[], None);
        check("/v1/traces", &[], None);
        // Node's own `fetch`.
        check("/v1/traces", &[("host", "127.0.0.1"), ("sec-fetch-mode", "cors")], None);
        check("/v1/traces", &[("host", "127.0.0.1"), ("sec-fetch-site", "none")], None);

        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:4318", "user@127.0.0.1", "", "127.0.0.1 evil"] {
            check("/v1/traces", &[("host", host)], Some("host "));
        }
        check("http://evil.example/v1/traces", &[("host", "127.0.0.1")], Some("host evil.example"));
        check("/v1/traces", &[("host", "127.0.0.1"), ("host", "evil.example")], Some("host evil.example"));
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            check("/v1/traces", &[("host", "localhost"), ("origin", origin)], Some("origin "));
        }
        check("/v1/traces", &[("host", "localhost"), ("sec-fetch-site", "cross-site")], Some("sec-fetch-site cross-site"));
    }
}
