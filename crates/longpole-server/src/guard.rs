//! Who may ask: somebody who has the token, on an address of this machine.
//!
//! The page listens on loopback, which every user and every web page of this machine can reach. Hence three walls:
//!
//! - the token, 128 random bits in the URL that `open` printed, later in a cookie: against other users and other pages;
//! - the `Host` header must name loopback: against names of others that resolve to 127.0.0.1 (DNS rebinding);
//! - no CORS header, and a content security policy without foreign origins: against leaks into and out of the page.

use std::fmt::Write;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, HeaderValue, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, StatusCode};

use crate::api::ApiError;
use crate::assets;

const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Said to a person who opened the page without its token.
const NO_TOKEN: &str = "<!doctype html><html lang=en><meta charset=utf-8><title>longpole</title>\
<h1>This address is not complete</h1><p>Open the whole address that <code>longpole open</code> printed: it ends in \
<code>?token=</code> and 32 digits. It holds as long as that command runs.\n";

/// The secret of one page, and the name of its cookie.
pub(crate) struct Guard {
    token: String,
    cookie: String,
}

impl Guard {
    /// A new secret. Cookies do not tell ports apart, so the port is in the name.
    pub(crate) fn new(port: u16) -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let token = bytes.iter().fold(String::with_capacity(32), |mut token, byte| {
            // Writing to a text does not fail.
            let _ = write!(token, "{byte:02x}");
            token
        });
        Ok(Guard { token, cookie: format!("longpole_{port}") })
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn in_query(&self, query: &str) -> bool {
        query.split('&').filter_map(|pair| pair.strip_prefix("token=")).any(|token| same(token, &self.token))
    }

    fn in_cookies(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, token)| name == self.cookie && same(token, &self.token))
    }
}

/// Compares without telling by its time where the first difference is.
fn same(given: &str, secret: &str) -> bool {
    given.len() == secret.len() && given.bytes().zip(secret.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

/// Lets a request in or not, and puts the same headers on every answer.
pub(crate) async fn check(State(guard): State<std::sync::Arc<Guard>>, request: Request, next: Next) -> Response {
    let by_query = request.uri().query().is_some_and(|query| guard.in_query(query));
    let mut response = if !names_loopback(request.headers()) {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden_host", "this page answers only to 127.0.0.1, localhost and [::1]").into_response()
    } else if by_query || guard.in_cookies(request.headers()) {
        next.run(request).await
    } else if !request.uri().path().starts_with("/api/") && wants_html(request.headers()) {
        assets::html(StatusCode::UNAUTHORIZED, NO_TOKEN)
    } else {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "use the address that `longpole open` printed: it carries a token")
            .into_response()
    };
    let headers = response.headers_mut();
    if by_query && let Ok(cookie) = HeaderValue::from_str(&format!("{}={}; HttpOnly; SameSite=Strict; Path=/", guard.cookie, guard.token)) {
        headers.insert(SET_COOKIE, cookie);
    }
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    response
}

fn wants_html(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("text/html"))
}

/// Whether the `Host` names this machine, on any port: a forwarded port has another one.
fn names_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()).is_some_and(|host| is_loopback(&host))
}

/// Whether this is a name of this machine that nobody else can give an address to.
pub(crate) fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    !authority.as_str().contains('@') && (matches!(host, "127.0.0.1" | "[::1]") || host.eq_ignore_ascii_case("localhost"))
}
