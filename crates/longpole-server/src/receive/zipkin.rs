//! Zipkin over HTTP: a POST to the path of its second version or of its first; answered as [`plain_text`] says.
//!
//! Which of the four formats it is says the path, the content type and the first bytes together: Node's client posts v2 JSON to
//! the path of v1, and others leave out the content type.

use http::{Method, Request};
use hyper::body::Incoming;

use super::job::Content;
use super::plain_text::{self, TextRequest};

/// Where Zipkin's clients post to.
pub(super) const PATHS: [&str; 2] = ["/api/v2/spans", "/api/v1/spans"];

/// What a request may say it carries. A web page cannot send any of them to another site without asking first.
const CONTENT_TYPES: &[&str] =
    &["application/json", "application/x-protobuf", "application/protobuf", "application/x-thrift", "application/vnd.apache.thrift.binary"];

/// Whether a request is Zipkin's.
pub(super) fn is_for(request: &Request<Incoming>) -> bool {
    request.method() == Method::POST && PATHS.contains(&request.uri().path())
}

/// The request, with what it carries.
pub(super) fn text_request(request: Request<Incoming>) -> TextRequest {
    let content = Content::Zipkin { path: request.uri().path().to_owned(), content_type: plain_text::content_type(&request) };
    TextRequest { request, content, content_types: CONTENT_TYPES }
}
