//! How the body of a request is compressed, and how it is inflated within a limit.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use flate2::Compression as Level;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use flate2::write::{GzEncoder, ZlibEncoder};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::limits::INFLATED_BYTES_MAX;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Identity,
    Gzip,
    /// Zlib, as HTTP and gRPC mean by "deflate".
    Deflate,
    Zstd,
}

impl Compression {
    /// The value of `Content-Encoding` or `grpc-encoding`; `None` where it is not one of ours.
    pub(crate) fn from_header(value: &str) -> Option<Self> {
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Compression::Identity),
            "gzip" | "x-gzip" => Some(Compression::Gzip),
            "deflate" => Some(Compression::Deflate),
            "zstd" => Some(Compression::Zstd),
            _ => None,
        }
    }

    /// Its name in either header, `None` where the header is left out.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Compression::Identity => None,
            Compression::Gzip => Some("gzip"),
            Compression::Deflate => Some("deflate"),
            Compression::Zstd => Some("zstd"),
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
        Compression::Zstd => inflate_zstd(bytes, limit, &mut out),
    }
    .map_err(|error| InflateError::Broken(error.to_string()))?;
    if out.len() > bytes_max { Err(InflateError::TooLarge(bytes_max)) } else { Ok(Cow::Owned(out)) }
}

/// Frames of zstd, one behind the other.
fn inflate_zstd(mut bytes: &[u8], limit: u64, out: &mut Vec<u8>) -> io::Result<usize> {
    while !bytes.is_empty() && (out.len() as u64) < limit {
        if let Some(rest) = after_skippable_frame(bytes) {
            bytes = rest;
            continue;
        }
        let mut frame_decoder = FrameDecoder::new();
        frame_decoder.set_max_window_size(INFLATED_BYTES_MAX as u64);
        let mut decoder = StreamingDecoder::new_with_decoder(&mut bytes, frame_decoder).map_err(io::Error::other)?;
        let left = limit - out.len() as u64;
        (&mut decoder).take(left).read_to_end(out)?;
    }
    Ok(out.len())
}

/// What follows a frame that holds no data of ours: RFC 8878, 3.1.2.
fn after_skippable_frame(bytes: &[u8]) -> Option<&[u8]> {
    let (magic, rest) = bytes.split_first_chunk()?;
    if u32::from_le_bytes(*magic) & !0xf != 0x184d_2a50 {
        return None;
    }
    let (length, rest) = rest.split_first_chunk()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
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
        Compression::Zstd => Ok(compress_to_vec(bytes, CompressionLevel::Fastest)),
    };
    // Memory takes every write.
    compressed.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"a span, and another span, and another span";

    #[test]
    fn each_compression_gives_back_what_it_took() {
        for name in ["gzip", "deflate", "zstd", "identity"] {
            let compression = Compression::from_header(name).unwrap();
            let packed = compress(TEXT, compression);
            assert_eq!(inflate(&packed, compression).unwrap(), TEXT, "{name}");
            let twice = [packed.clone(), packed.clone()].concat();
            if ["gzip", "zstd"].contains(&name) {
                assert_eq!(inflate(&twice, compression).unwrap(), [TEXT, TEXT].concat(), "{name}, two of them");
            }
            if name != "identity" {
                assert!(matches!(inflate(&packed[..packed.len() - 1], compression), Err(InflateError::Broken(_))), "{name}, cut off");
                assert_eq!(inflate_up_to(&packed, compression, TEXT.len() - 1), Err(InflateError::TooLarge(TEXT.len() - 1)), "{name}");
                assert!(inflate(b"no such thing", compression).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn skippable_frames_of_zstd_hold_nothing() {
        let skippable = [&0x184d_2a53_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
        let body = [skippable.clone(), compress(TEXT, Compression::Zstd), skippable.clone()].concat();
        assert_eq!(inflate(&body, Compression::Zstd).unwrap(), TEXT);
        assert!(inflate(&skippable[..skippable.len() - 1], Compression::Zstd).is_err());
    }

    #[test]
    fn a_window_that_no_body_needs_takes_no_memory() {
        // A frame that asks for a window of 1 TiB.
        let huge = [&0xfd2f_b528_u32.to_le_bytes()[..], &[0x00, 0xf0], &[0x01, 0, 0]].concat();
        assert!(inflate(&huge, Compression::Zstd).is_err());
    }
}
