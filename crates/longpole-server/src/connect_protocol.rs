//! What Pyroscope's clients need of the Connect protocol: messages in protobuf or JSON, errors in JSON.

use http::StatusCode;
use longpole_wire::pyroscope::Codec;
use serde_json::json;

/// How a message is encoded, by its content type.
pub(crate) fn codec_of(content_type: Option<&str>) -> Option<Codec> {
    match content_type?.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/proto" | "application/x-protobuf" | "application/protobuf" => Some(Codec::Protobuf),
        "application/json" => Some(Codec::Json),
        _ => None,
    }
}

/// The content type of an answer.
pub(crate) fn media_type(codec: Codec) -> &'static str {
    match codec {
        Codec::Protobuf => "application/proto",
        Codec::Json => "application/json",
    }
}

/// The body of an error, in JSON whatever the codec.
pub(crate) fn error_body(status: StatusCode, message: &str) -> String {
    let code = match status {
        StatusCode::FORBIDDEN => "permission_denied",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE | StatusCode::UNPROCESSABLE_ENTITY => "resource_exhausted",
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::REQUEST_TIMEOUT => "unavailable",
        StatusCode::INTERNAL_SERVER_ERROR => "internal",
        _ => "invalid_argument",
    };
    json!({ "code": code, "message": message }).to_string()
}
