//! How the body of a request is compressed, and how it is inflated within a limit.

use std::borrow::Cow;
use std::io::{Read, Write};

use flate2::Compression as Level;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::limits::INFLATED_BYTES_MAX;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Identity,
    Gzip,
    /// Zlib, as HTTP and gRPC mean by "deflate".
    Deflate,
}

impl Compression {
    /// The value of `Content-Encoding` or `grpc-encoding`; `None` where it is not one of ours.
    pub(crate) fn from_header(value: &str) -> Option<Self> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Compression::Identity),
            "gzip" | "x-gzip" => Some(Compression::Gzip),
            "deflate" => Some(Compression::Deflate),
            _ => None,
        }
    }

    /// Its name in either header, `None` where the header is left out.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Compression::Identity => None,
            Compression::Gzip => Some("gzip"),
            Compression::Deflate => Some("deflate"),
        }
    }
}

/// Why a body was not inflated.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InflateError {
    #[error("body larger than {} MiB after decompression: export smaller batches", .0 >> 20)]
    TooLarge(usize),
    #[error("cannot decompress the body: {0}")]
    Broken(String),
}

/// Inflates up to [`INFLATED_BYTES_MAX`], and stops there if the body would become larger.
pub(crate) fn inflate(bytes: &[u8], compression: Compression) -> Result<Cow<'_, [u8]>, InflateError> {
    inflate_up_to(bytes, compression, INFLATED_BYTES_MAX)
}

/// Inflates up to `bytes_max` bytes.
pub(crate) fn inflate_up_to(bytes: &[u8], compression: Compression, bytes_max: usize) -> Result<Cow<'_, [u8]>, InflateError> {
    let mut out = Vec::new();
    let limit = bytes_max as u64 + 1;
    match compression {
        Compression::Identity => return Ok(Cow::Borrowed(bytes)),
        Compression::Gzip => MultiGzDecoder::new(bytes).take(limit).read_to_end(&mut out),
        Compression::Deflate => ZlibDecoder::new(bytes).take(limit).read_to_end(&mut out),
    }
    .map_err(|error| InflateError::Broken(error.to_string()))?;
    if out.len() > bytes_max { Err(InflateError::TooLarge(bytes_max)) } else { Ok(Cow::Owned(out)) }
}

/// The bytes as they came, or nearly: a target that is far away was to get them compressed.
pub(crate) fn compress(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let compressed = match compression {
        Compression::Identity => Ok(bytes.to_vec()),
        Compression::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Level::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish())
        }
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Level::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish())
        }
    };
    // Memory takes every write.
    compressed.unwrap_or_default()
}
