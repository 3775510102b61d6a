//! Web pages that may send spans: those of the origins that the user lists (CORS, as the Fetch standard has it).
//!
//! A browser asks before it sends: `OPTIONS` with `Origin` and `Access-Control-Request-Method`. A page of another origin gets the answer that
//! any page gets without a list.

use crate::answer::AnswerBody;
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS,
    ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};

/// Asks whether a page of the internet may send to this machine: Private Network Access.
const REQUEST_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-request-private-network");
const ALLOW_PRIVATE_NETWORK: HeaderName = HeaderName::from_static("access-control-allow-private-network");

/// How long a browser remembers the answer: the two hours that Chromium takes at most.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Origins whose pages may send spans; none without a list.
#[derive(Debug, Clone, Default)]
pub struct AllowedOrigins(Vec<String>);

/// What is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an origin such as https://shop.example, https://*.shop.example or http://localhost:3000, or * for every page")]
pub struct NotAnOrigin;

impl AllowedOrigins {
    /// Adds an origin: scheme, host and, unless it is the scheme's own, port. One `*` stands for any text.
    ///
    /// # Errors
    ///
    /// [`NotAnOrigin`] if no page can have it.
    pub fn add(&mut self, origin: &str) -> Result<(), NotAnOrigin> {
        let origin = origin.to_ascii_lowercase();
        let host = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', ',']);
        if origin.matches('*').count() > 1 || !(origin == "*" || host.is_some_and(is_host)) {
            return Err(NotAnOrigin);
        }
        self.0.push(origin);
        Ok(())
    }

    /// The origin of a request, if it is one of these.
    pub(super) fn of(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).into_iter();
        let (origin, None) = (origins.next()?, origins.next()) else { return None };
        let text = origin.to_str().ok()?.to_ascii_lowercase();
        let matches = |allowed: &String| match allowed.split_once('*') {
            None => *allowed == text,
            Some((before, after)) => text.len() >= before.len() + after.len() && text.starts_with(before) && text.ends_with(after),
        };
        self.0.iter().any(matches).then(|| origin.clone())
    }
}

/// The answer to a browser that asks whether its page may send.
pub(super) fn preflight<B>(request: &Request<B>) -> Option<Response<AnswerBody>> {
    if request.method() != Method::OPTIONS || !request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    // Exporters send headers of their user, whose names nobody knows before.
    if let Some(names) = request.headers().get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    if request.headers().contains_key(REQUEST_PRIVATE_NETWORK) {
        headers.insert(ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
    }
    Some(response)
}

/// Lets the page of this origin read the answer.
pub(super) fn allow(response: &mut Response<AnswerBody>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    headers.append(VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(list: &[&str], origin: &'static str) -> bool {
        let mut origins = AllowedOrigins::default();
        list.iter().for_each(|origin| origins.add(origin).unwrap());
        origins.of(&HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))])).is_some()
    }

    #[test]
    fn only_pages_of_the_listed_origins_may_send() {
        assert!(allowed(&["https://shop.example"], "https://shop.example"));
        assert!(allowed(&["http://localhost:3000", "https://*.shop.example"], "https://www.shop.example"));
        assert!(allowed(&["http://localhost:*"], "http://localhost:5173"));
        assert!(allowed(&["*"], "null"));
        for other in
            ["http://shop.example", "https://shop.example:8443", "https://shop.example.evil.example", "https://evilshop.example", "null"]
        {
            assert!(!allowed(&["https://shop.example", "https://*.shop.example"], other), "{other}");
        }
        assert!(!allowed(&[], "https://shop.example"));
    }

    #[test]
    fn two_origins_are_none() {
        let mut origins = AllowedOrigins::default();
        origins.add("*").unwrap();
        let mut headers = HeaderMap::new();
        headers.append(ORIGIN, HeaderValue::from_static("https://a.example"));
        headers.append(ORIGIN, HeaderValue::from_static("https://b.example"));
        assert_eq!(origins.of(&headers), None);
    }

    #[test]
    fn what_no_page_can_have_is_refused() {
        for text in
            ["shop.example", "ftp://shop.example", "https://", "https://shop.example/", "https://*.*.example", "", "https://a,https://b"]
        {
            assert_eq!(AllowedOrigins::default().add(text), Err(NotAnOrigin), "{text}");
        }
    }
}
