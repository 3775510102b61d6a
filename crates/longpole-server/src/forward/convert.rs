//! A request in another form than the one it came in. All of this may take a while, and is done on threads that may block.

use longpole_model::{Loss, Span, SpanBatch};
use longpole_wire::{Limits, otlp, zipkin};

use crate::otlp_request::{Encoding, Parcel, inflate};

/// The spans of a request.
pub(super) fn spans(parcel: &Parcel) -> Result<Vec<Span>, String> {
    let inflated = inflate(&parcel.body, parcel.compression).map_err(|error| error.to_string())?;
    let mut batch = SpanBatch::default();
    match parcel.encoding {
        Encoding::Protobuf => otlp::trace::decode(&inflated, &Limits::default(), &mut batch),
        Encoding::Json => otlp::json::decode(&inflated, &Limits::default(), &mut batch),
    }
    // It was checked before it was kept, and what of it could not be kept is counted where the log is replayed.
    .map_err(|error| error.to_string())?;
    Ok(batch.spans)
}

/// The request in protobuf.
pub(super) fn protobuf(parcel: &Parcel) -> Result<Vec<u8>, String> {
    Ok(otlp::encode_trace(&spans(parcel)?))
}

/// The request as one line of JSON, with its end.
pub(super) fn json_line(parcel: &Parcel) -> Result<Vec<u8>, String> {
    let mut line = match parcel.encoding {
        Encoding::Protobuf => otlp::json::encode(&spans(parcel)?),
        Encoding::Json => {
            let mut text = inflate(&parcel.body, parcel.compression).map_err(|error| error.to_string())?.into_owned();
            // Between the tokens of JSON a line break is a blank, and inside of a text it cannot stand.
            text.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
            text
        }
    };
    line.push(b'\n');
    Ok(line)
}

/// The request as Zipkin's JSON, and what that has no place for.
pub(super) fn zipkin(parcel: &Parcel, v1: bool) -> Result<(Vec<u8>, Vec<Loss>), String> {
    let (json, losses) = zipkin::encode_v2_json(&spans(parcel)?);
    if !v1 {
        return Ok((json, losses));
    }
    let v1 = zipkin::v1_json_of_v2(&json).map_err(|error| format!("cannot write zipkin v1: {error}"))?;
    Ok((v1, losses))
}

/// The request as frames of AppDash.
pub(super) fn appdash_frames(parcel: &Parcel) -> Result<Vec<u8>, String> {
    Ok(longpole_wire::appdash::encode_frames(&spans(parcel)?))
}

/// Runs a conversion beside the receiver's thread.
pub(super) async fn beside<T: Send + 'static>(convert: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(convert).await.unwrap_or_else(|_| Err("it could not be converted, because of a bug in longpole".to_owned()))
}
