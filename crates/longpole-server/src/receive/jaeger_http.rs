//! Jaeger's Thrift over HTTP, as its clients send it to a collector: a POST of one batch; answered as [`plain_text`](super::plain_text) says.

use http::{Method, Request};
use hyper::body::Incoming;

use super::job::{Content, JaegerFormat};
use super::plain_text::TextRequest;

/// Where its clients post to.
pub(super) const PATH: &str = "/api/traces";

/// What a request may say it carries. A web page cannot send any of them to another site without asking first.
const CONTENT_TYPES: &[&str] = &["application/x-thrift", "application/vnd.apache.thrift.binary"];

/// Whether a request is one of these.
pub(super) fn is_for(request: &Request<Incoming>) -> bool {
    request.method() == Method::POST && request.uri().path() == PATH
}

/// The request, with what it carries.
pub(super) fn text_request(request: Request<Incoming>) -> TextRequest {
    TextRequest { request, content: Content::Jaeger(JaegerFormat::Thrift), content_types: CONTENT_TYPES }
}
