//! Tokens of a server: without one of them nobody sends spans or reads them.
//!
//! ```text
//! Authorization: Bearer TOKEN          exporters (OTEL_EXPORTER_OTLP_HEADERS), data sources, calls by gRPC
//! Authorization: Basic …               clients that know a user and a password only: the password is the token
//! Cookie: longpole_16686=TOKEN         a browser, once its user has given it: /search?token=TOKEN leads to /search with the cookie
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CACHE_CONTROL, COOKIE, HeaderValue, LOCATION, SET_COOKIE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};

use crate::answer::AnswerBody;
use crate::auth::{in_this_origin, same, wants_html};
use crate::query_parameters::decoded;

/// Characters of a token: a shorter one can be guessed.
const CHARACTERS_MIN: usize = 16;
const CHARACTERS_MAX: usize = 512;

/// Addresses that say nothing of spans. Health checks and the redirect to the page have no token.
const OPEN_PATHS: [&str; 5] = ["/", "/livez", "/readyz", "/health", "/grpc.health.v1.Health/Check"];

/// How long a browser keeps the cookie, in seconds: 30 days.
const COOKIE_SECS: u32 = 30 * 24 * 3600;

/// The tokens of those that may send or read.
#[derive(Debug, Clone)]
pub struct AccessTokens(Vec<AccessToken>);

#[derive(Clone)]
struct AccessToken {
    text: String,
    sends: bool,
    reads: bool,
}

/// Never the token itself.
impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessToken").field("sends", &self.sends).field("reads", &self.reads).finish_non_exhaustive()
    }
}

/// Why a file is no list of tokens.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokensError {
    /// It has no line with one.
    #[error("it has no token: expected a line such as the output of `openssl rand -hex 32`")]
    None,
    /// A line is not one.
    #[error(
        "line {line}: expected a token of {CHARACTERS_MIN} to {CHARACTERS_MAX} letters, digits and any of -._~+/=, then nothing, `send` or \
         `read`"
    )]
    Line {
        /// Its number, from 1 on.
        line: usize,
    },
}

/// What a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Send,
    Read,
    /// What any client of the server may know: how to sample.
    Either,
}

/// What to do with a request.
#[derive(Debug)]
pub(super) enum Admission {
    Granted,
    /// The token stands in the address: the browser gets it as a cookie, and goes on at this path.
    Exchange {
        token: String,
        path: String,
    },
    Refused(TokenRefusal),
}

/// Why a request may not enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenRefusal {
    NoToken,
    WrongToken,
    /// Its token is for the other purpose.
    OtherPurpose(Purpose),
}

impl AccessTokens {
    /// Reads a list of tokens: one a line, and behind it `send` or `read` if it is for that only. Lines of `#` are comments.
    ///
    /// # Errors
    ///
    /// [`TokensError`] if a line is no token, or none is there.
    pub fn parse(text: &str) -> Result<AccessTokens, TokensError> {
        let mut tokens = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.split_whitespace();
            let (token, role, None) = (words.next().unwrap_or_default(), words.next(), words.next()) else {
                return Err(TokensError::Line { line: number });
            };
            let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            let is_long = (CHARACTERS_MIN..=CHARACTERS_MAX).contains(&token.len());
            let (sends, reads) = (role != Some("read"), role != Some("send"));
            if !is_long || !token.bytes().all(is_token) || role.is_some_and(|role| !matches!(role, "send" | "read")) {
                return Err(TokensError::Line { line: number });
            }
            tokens.push(AccessToken { text: token.to_owned(), sends, reads });
        }
        if tokens.is_empty() { Err(TokensError::None) } else { Ok(AccessTokens(tokens)) }
    }

    /// What to do with a request at a port.
    pub(super) fn admission<B>(&self, request: &Request<B>, purpose: Purpose, port: u16) -> Admission {
        if OPEN_PATHS.contains(&request.uri().path()) {
            return Admission::Granted;
        }
        if let Some(token) = token_in_address(request) {
            let path = in_this_origin(&without_token(request.uri()));
            return match self.judge([token.clone()], purpose) {
                Ok(()) => Admission::Exchange { token, path },
                Err(refused) => Admission::Refused(refused),
            };
        }
        let cookie = (purpose != Purpose::Send || request.method() == Method::PUT).then(|| cookie_name(port));
        match self.judge(tokens_in(request.headers(), cookie.as_deref()), purpose) {
            Ok(()) => Admission::Granted,
            Err(refused) => Admission::Refused(refused),
        }
    }

    fn judge(&self, given: impl IntoIterator<Item = String>, purpose: Purpose) -> Result<(), TokenRefusal> {
        let mut worst = TokenRefusal::NoToken;
        for given in given {
            // All of them each time: how long it takes does not say which.
            let known = self.0.iter().fold(None, |found, token| if same(&given, &token.text) { Some(token) } else { found });
            let Some(token) = known else {
                worst = TokenRefusal::WrongToken;
                continue;
            };
            match purpose {
                Purpose::Send if !token.sends => worst = TokenRefusal::OtherPurpose(purpose),
                Purpose::Read if !token.reads => worst = TokenRefusal::OtherPurpose(purpose),
                _ => return Ok(()),
            }
        }
        Err(worst)
    }
}

/// Cookies do not tell ports apart, so the port is in the name.
fn cookie_name(port: u16) -> String {
    format!("longpole_{port}")
}

/// The tokens that a request comes with.
fn tokens_in(headers: &HeaderMap, cookie: Option<&str>) -> Vec<String> {
    let mut tokens = Vec::new();
    for value in headers.get_all(AUTHORIZATION).into_iter().filter_map(|value| value.to_str().ok()) {
        let Some((scheme, rest)) = value.trim().split_once(' ') else { continue };
        let rest = rest.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            tokens.push(rest.to_owned());
        } else if scheme.eq_ignore_ascii_case("basic") {
            let pair = STANDARD.decode(rest).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            tokens.extend(pair.and_then(|pair| Some(pair.split_once(':')?.1.to_owned())));
        }
    }
    let cookies = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    let of_cookies = cookies.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| Some(*name) == cookie);
    tokens.extend(of_cookies.map(|(_, token)| token.to_owned()));
    tokens
}

/// The token in the address of a page. Queries of other clients may have a parameter of this name.
fn token_in_address<B>(request: &Request<B>) -> Option<String> {
    let is_page = request.method() == Method::GET && wants_html(request.headers());
    let query = request.uri().query().filter(|_| is_page)?;
    decoded(query.split('&').find_map(|pair| pair.strip_prefix("token="))?).ok()
}

/// The path and query without the token.
fn without_token(uri: &Uri) -> String {
    let rest: Vec<&str> =
        uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("token=")).collect();
    if rest.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), rest.join("&")) }
}

impl TokenRefusal {
    /// The reason in the answer to its client.
    pub(super) fn reason(self) -> &'static str {
        match self {
            TokenRefusal::NoToken => "this server needs a token: send the header `Authorization: Bearer TOKEN`",
            TokenRefusal::WrongToken => "the server does not know this token",
            TokenRefusal::OtherPurpose(Purpose::Send) => "this token may only read",
            TokenRefusal::OtherPurpose(_) => "this token may only send",
        }
    }

    /// The loss of requests with spans.
    pub(super) fn loss(self) -> &'static str {
        match self {
            TokenRefusal::NoToken => "requests without a token",
            TokenRefusal::WrongToken => "requests with a wrong token",
            TokenRefusal::OtherPurpose(_) => "requests with a token that may only read",
        }
    }
}

/// Gives a browser its cookie, and leads it to the address without the token, so that no history keeps that.
pub(super) fn exchange(token: &str, path: &str, port: u16) -> Response<AnswerBody> {
    let mut response = Response::new(Full::default().boxed_unsync());
    // `Lax`: a link to a trace in a chat works, and no other page can send with it.
    let cookie = format!("{}={token}; HttpOnly; SameSite=Lax; Path=/; Max-Age={COOKIE_SECS}", cookie_name(port));
    *response.status_mut() = StatusCode::SEE_OTHER;
    for (name, value) in [(SET_COOKIE, cookie.as_str()), (LOCATION, path)] {
        response.headers_mut().extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
    }
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "0123456789abcdef";
    const SENDS: &str = "sends-0123456789";
    const READS: &str = "reads-0123456789";

    fn tokens() -> AccessTokens {
        AccessTokens::parse(&format!("# of the shop\n{BOTH}\n\n{SENDS} send\n  {READS}  read\n")).unwrap()
    }

    fn entry(purpose: Purpose, uri: &str, headers: &[(&str, &str)]) -> Admission {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        tokens().admission(&request.body(()).unwrap(), purpose, 16686)
    }

    #[track_caller]
    fn check(purpose: Purpose, authorization: &str, expected: Result<(), TokenRefusal>) {
        let found = match entry(purpose, "/v1/traces", &[("authorization", authorization)]) {
            Admission::Granted => Ok(()),
            Admission::Refused(refused) => Err(refused),
            Admission::Exchange { .. } => panic!("no address"),
        };
        assert_eq!(found, expected, "{authorization}");
    }

    #[test]
    fn a_token_is_for_sending_for_reading_or_for_both() {
        for purpose in [Purpose::Send, Purpose::Read, Purpose::Either] {
            check(purpose, &format!("Bearer {BOTH}"), Ok(()));
            check(purpose, "Bearer 0123456789abcdee", Err(TokenRefusal::WrongToken));
            check(purpose, "Bearer", Err(TokenRefusal::NoToken));
            check(purpose, "Digest username=x", Err(TokenRefusal::NoToken));
        }
        check(Purpose::Send, &format!("bearer  {SENDS}"), Ok(()));
        check(Purpose::Read, &format!("Bearer {SENDS}"), Err(TokenRefusal::OtherPurpose(Purpose::Read)));
        check(Purpose::Read, &format!("Bearer {READS}"), Ok(()));
        check(Purpose::Send, &format!("Bearer {READS}"), Err(TokenRefusal::OtherPurpose(Purpose::Send)));
        check(Purpose::Either, &format!("Bearer {READS}"), Ok(()));
        // Clients that know users and passwords.
        check(Purpose::Send, &format!("Basic {}", STANDARD.encode(format!("anybody:{SENDS}"))), Ok(()));
        check(Purpose::Send, "Basic !", Err(TokenRefusal::NoToken));
    }

    #[test]
    fn a_browser_exchanges_the_token_of_its_address_for_a_cookie() {
        let html = ("accept", "text/html,application/xhtml+xml");
        let Admission::Exchange { token, path } = entry(Purpose::Read, &format!("//search?service=cart&token={READS}&limit=5"), &[html])
        else {
            panic!("no exchange")
        };
        assert_eq!((token.as_str(), path.as_str()), (READS, "/search?service=cart&limit=5"));
        let response = exchange(&token, &path, 16686);
        assert_eq!((response.status().as_u16(), response.headers()[LOCATION].to_str().unwrap()), (303, "/search?service=cart&limit=5"));
        let cookie = response.headers()[SET_COOKIE].to_str().unwrap().split(';').next().unwrap().to_owned();
        assert!(matches!(entry(Purpose::Read, "/api/services", &[("cookie", &format!("a=b; {cookie}"))]), Admission::Granted));
        // A cookie sends no spans, and that of another port says nothing.
        let sent = entry(Purpose::Send, "/v1/traces", &[("cookie", &cookie)]);
        assert!(matches!(sent, Admission::Refused(TokenRefusal::NoToken)), "{sent:?}");
        let of_other_port = entry(Purpose::Read, "/api/services", &[("cookie", &format!("longpole_80={READS}"))]);
        assert!(matches!(of_other_port, Admission::Refused(TokenRefusal::NoToken)), "{of_other_port:?}");
        let wrong = entry(Purpose::Read, "/search?token=guessed", &[html]);
        assert!(matches!(wrong, Admission::Refused(TokenRefusal::WrongToken)), "{wrong:?}");
    }

    #[test]
    fn health_needs_no_token() {
        for path in OPEN_PATHS {
            assert!(matches!(entry(Purpose::Read, path, &[]), Admission::Granted), "{path}");
        }
    }

    #[test]
    fn what_is_no_token_is_named_by_its_line() {
        for (text, line) in [("short", 1), ("\n#\n0123456789abcdef write", 3), ("0123456789abcdef read more", 1), ("0123456789äbcdef", 1)]
        {
            assert_eq!(AccessTokens::parse(text).unwrap_err(), TokensError::Line { line }, "{text}");
        }
        assert_eq!(AccessTokens::parse("# none\n").unwrap_err(), TokensError::None);
        assert!(!format!("{:?}", tokens()).contains(BOTH));
    }
}
