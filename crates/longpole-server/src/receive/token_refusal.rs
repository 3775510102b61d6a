//! The answers to requests without the right token: a status in their protocol, and a form for a browser.

use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use super::otlp_http;
use super::tokens::TokenRefusal;
use crate::answer::AnswerBody;
use crate::auth::wants_html;
use crate::otlp_request::grpc::code;
use crate::otlp_request::grpc_call;

/// What a person without a token sees; `WHY` says what is wrong. The form leads back with the token.
const FORM: &str = "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>longpole</title>\
<style>body{font:16px/1.5 system-ui;max-width:32rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}input,button{font:inherit;padding:.4rem .6rem}\
input{width:100%;box-sizing:border-box;margin:.5rem 0}</style><h1>WHY</h1><form method=get><label>Token\
<input name=token type=password autofocus required autocomplete=current-password></label><button>Open</button></form>\
<p>Whoever runs the server has it in the file of <code>--token-file</code>.\n";

/// Lets the form above be shown, and nothing else.
const FORM_POLICY: HeaderValue =
    HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'");

/// The answer to it.
pub(super) fn answer<B>(refusal: TokenRefusal, request: &Request<B>) -> Response<AnswerBody> {
    let is_known = matches!(refusal, TokenRefusal::OtherPurpose(_));
    if grpc_call::is_grpc(request) {
        let code = if is_known { code::PERMISSION_DENIED } else { code::UNAUTHENTICATED };
        return grpc_call::respond(Err(grpc_call::Refusal::new(code, refusal.reason())));
    }
    if request.method() == Method::GET && wants_html(request.headers()) {
        let why = match refusal {
            TokenRefusal::NoToken => "This server needs a token",
            TokenRefusal::WrongToken => "This is no token of this server",
            TokenRefusal::OtherPurpose(_) => "This token may only send; the page needs one that may read",
        };
        let mut page = Response::new(Full::from(FORM.replace("WHY", why)).boxed_unsync());
        *page.status_mut() = StatusCode::UNAUTHORIZED;
        let headers = page.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, FORM_POLICY);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        return page;
    }
    let (status, code) =
        if is_known { (StatusCode::FORBIDDEN, code::PERMISSION_DENIED) } else { (StatusCode::UNAUTHORIZED, code::UNAUTHENTICATED) };
    let mut response = otlp_http::refuse(request, status, code, refusal.reason());
    if !is_known {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"longpole\""));
    }
    response
}

#[cfg(test)]
mod tests {
    use http::header::ACCEPT;

    use super::*;

    #[test]
    fn each_protocol_has_its_own_refusal() {
        let answer = |request: http::request::Builder| answer(TokenRefusal::NoToken, &request.body(()).unwrap());
        let of_http = answer(Request::post("/v1/traces"));
        assert_eq!((of_http.status().as_u16(), of_http.headers().contains_key(WWW_AUTHENTICATE)), (401, true));
        let of_grpc = answer(Request::post("/x/Y").version(http::Version::HTTP_2).header("content-type", "application/grpc"));
        assert_eq!((of_grpc.status().as_u16(), of_grpc.headers()["grpc-status"].to_str().unwrap()), (200, "16"));
        let of_browser = answer(Request::get("/search").header(ACCEPT, "text/html"));
        assert_eq!((of_browser.status().as_u16(), of_browser.headers()[CONTENT_SECURITY_POLICY].clone()), (401, FORM_POLICY));
    }
}
