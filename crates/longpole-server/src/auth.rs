//! Access to the page: a client needs the token, and must use an address of this machine.
//!
//! The page listens on loopback, which every user and every web page of this machine can reach. Hence four walls:
//!
//! - the user: the page refuses connections of other users before it reads anything ([`page_clients`](crate::page_clients)), because cookies do
//!   not tell ports apart, and a browser sends the cookie of this page to every server on 127.0.0.1;
//! - the token, 128 random bits in the URL that `open` printed, later in a cookie: against other pages, and against other users if the
//!   kernel does not say which user a connection belongs to. Everybody can read the arguments of a process, so a browser starts with a
//!   different key, which works once, for [`ONCE_MAX`], and which the page exchanges for the cookie;
//! - the `Host` header must name loopback: against other names that resolve to 127.0.0.1 (DNS rebinding);
//! - no CORS header, and a content security policy without foreign origins: against leaks into and out of the page.
//!
//! A page of one file at a port that the user chose ([`Access::OwnUser`]) has no token: its address is known before it starts, as that of
//! Pulumi's `view-trace`. The kernel has to say that a connection is ours, and a browser that no other web page sent the request; where it
//! does not, the token is needed here, too.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, HeaderValue, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::uri::Authority;
use http::{HeaderMap, Method, StatusCode};

use crate::api::ApiError;
use crate::assets;
use crate::limits::ONCE_MAX;
use crate::page_clients::PageClient;

const POLICY: &str = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The answer to a person who opens the page without its token.
const NO_TOKEN: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'><title>longpole</title>\
<h1>This address lacks its token</h1><p>Open the whole address that <code>longpole open</code> printed: it ends in <code>?token=</code> and \
32 letters and digits. It is valid while that command runs; run it again for a new one.\n";

/// The answer to a person whose browser came too late, or second.
const NO_MORE: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=color-scheme content='light dark'><title>longpole</title>\
<h1>This address works once</h1><p>It was \
used already, or is older than a minute. Open the address that <code>longpole open</code> printed. If nobody but you can have used this \
one, nothing is wrong.\n";

/// The answer to a process of another user, and to one whose connection has closed.
const OTHERS: &str = "only the user who runs `longpole open`, and root, may use this page: run `longpole open` as the user of the browser";

/// What a client of our user needs to use the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The token.
    Token,
    /// Nothing, where the kernel says whose connection it is. For a page that serves one file at a port that its user chose.
    OwnUser,
}

/// The secret of one page, and the name of its cookie.
pub(crate) struct PageAuth {
    access: Access,
    token: String,
    cookie: String,
    once: Mutex<Option<Once>>,
}

impl std::fmt::Debug for PageAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageAuth").field("cookie", &self.cookie).finish_non_exhaustive()
    }
}

/// A key that is exchanged for the token.
struct Once {
    key: String,
    until: Instant,
}

/// 128 random bits.
pub(crate) fn secret() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().fold(String::with_capacity(32), |mut secret, byte| {
        // Writing to a text does not fail.
        let _ = write!(secret, "{byte:02x}");
        secret
    }))
}

impl PageAuth {
    /// The page at this address, with this token. Cookies do not tell ports apart, so the port is in the name.
    pub(crate) fn new(address: SocketAddr, access: Access, token: String) -> Self {
        PageAuth { access, token, cookie: format!("longpole_{}", address.port()), once: Mutex::default() }
    }

    /// A new key for one use. It replaces earlier ones.
    pub(crate) fn new_once(&self) -> Result<String, getrandom::Error> {
        let key = secret()?;
        *self.once() = Some(Once { key: key.clone(), until: Instant::now() + ONCE_MAX });
        Ok(key)
    }

    fn once(&self) -> MutexGuard<'_, Option<Once>> {
        self.once.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the key up, if it is the one.
    fn redeem(&self, key: &str) -> bool {
        self.once().take_if(|once| same(key, &once.key)).is_some_and(|once| Instant::now() < once.until)
    }

    fn set_cookie(&self) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("{}={}; HttpOnly; SameSite=Strict; Path=/", self.cookie, self.token)).ok()
    }

    /// Whether this client may come without the token.
    fn needs_no_token(&self, client: PageClient, headers: &HeaderMap) -> bool {
        self.access == Access::OwnUser && client == PageClient::Ours && is_own_request(headers)
    }

    pub(crate) fn token(&self) -> &str {
        &self.token
    }

    fn in_query(&self, query: &str) -> bool {
        values(query, "token=").any(|token| same(token, &self.token))
    }

    fn in_cookies(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, token)| name == self.cookie && same(token, &self.token))
    }
}

/// Compares in constant time, which hides where the first difference is.
pub(crate) fn same(given: &str, secret: &str) -> bool {
    given.len() == secret.len() && given.bytes().zip(secret.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query.split('&').filter_map(move |pair| pair.strip_prefix(name))
}

/// The parts of a request that the exchange of its key needs.
struct Exchange {
    key: String,
    path: String,
    has_cookie: bool,
}

impl Exchange {
    fn of(auth: &PageAuth, request: &Request) -> Option<Self> {
        if request.method() != Method::GET {
            return None;
        }
        let key = values(request.uri().query()?, "once=").next()?.to_owned();
        Some(Exchange { key, path: in_this_origin(request.uri().path()), has_cookie: auth.in_cookies(request.headers()) })
    }
}

/// The path as an address of this page: browsers take `//host/x`, and `/\host/x` as well, for the address of another host.
pub(crate) fn in_this_origin(path: &str) -> String {
    format!("/{}", path.trim_start_matches(['/', '\\']))
}

/// Exchanges a key for the cookie, and redirects to the address without the key, so that no history keeps it.
fn exchange(auth: &PageAuth, client: PageClient, Exchange { key, path, has_cookie }: Exchange) -> Response {
    // A client that has closed its connection cannot use the key, and must not use it up.
    let is_gone = client == PageClient::Gone;
    if is_gone && !has_cookie {
        return ApiError::new(StatusCode::FORBIDDEN, "forbidden_user", OTHERS).into_response();
    }
    let is_redeemed = !is_gone && auth.redeem(&key);
    if !is_redeemed && !has_cookie {
        return assets::html(StatusCode::UNAUTHORIZED, NO_MORE);
    }
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let (Some(cookie), Ok(path)) = (auth.set_cookie(), HeaderValue::from_str(&path)) {
        response.headers_mut().insert(SET_COOKIE, cookie);
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

/// The answer to every request of another user, whatever key it has.
pub(crate) fn other_user() -> Response {
    let mut response = ApiError::new(StatusCode::FORBIDDEN, "forbidden_user", OTHERS).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    with_policy(response)
}

/// Lets a request in or not, and puts the same headers on every answer.
pub(crate) async fn check(State(auth): State<Arc<PageAuth>>, request: Request, next: Next) -> Response {
    let by_query = request.uri().query().is_some_and(|query| auth.in_query(query));
    let once = Exchange::of(&auth, &request);
    let client = request.extensions().get().copied().unwrap_or(PageClient::Gone);
    let mut response = if !names_loopback(request.headers(), request.uri().authority()) {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden_host", "this page answers only to 127.0.0.1, localhost and [::1]").into_response()
    } else if let Some(once) = once {
        exchange(&auth, client, once)
    } else if by_query || auth.in_cookies(request.headers()) || auth.needs_no_token(client, request.headers()) {
        next.run(request).await
    } else if !request.uri().path().starts_with("/api/") && wants_html(request.headers()) {
        assets::html(StatusCode::UNAUTHORIZED, NO_TOKEN)
    } else {
        ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", "use the address that `longpole open` printed: it contains the token")
            .into_response()
    };
    if by_query && let Some(cookie) = auth.set_cookie() {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    with_policy(response)
}

/// Adds the headers that every answer has for browsers.
pub(crate) fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin"));
    headers.insert(HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin"));
    response
}

/// Whether no other web page made the request, as far as the browser says: it is a person's, one of this page's, or no browser's at all.
fn is_own_request(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all("sec-fetch-site").into_iter().peekable();
    let is_fetched = sites.peek().is_some();
    if !is_fetched {
        // Browsers without these headers name the page that asks.
        return !headers.contains_key(ORIGIN);
    }
    sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none"))
}

/// Whether a person's browser asks for a page.
pub(crate) fn wants_html(headers: &HeaderMap) -> bool {
    headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains("text/html"))
}

/// Whether the `Host` names this machine, on any port: a forwarded port has another one. In HTTP/2 the address names it, and `Host` may be missing.
fn names_loopback(headers: &HeaderMap, authority: Option<&Authority>) -> bool {
    let mut hosts = headers.get_all(HOST).into_iter();
    match (hosts.next(), hosts.next(), authority) {
        (None, None, Some(authority)) => is_loopback(authority),
        (Some(host), None, _) => {
            let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
            host.is_some_and(|host| is_loopback(&host))
        }
        _ => false,
    }
}

/// Whether this is a name of this machine that only this machine resolves.
pub(crate) fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    !authority.as_str().contains('@') && (matches!(host, "127.0.0.1" | "[::1]") || host.eq_ignore_ascii_case("localhost"))
}
