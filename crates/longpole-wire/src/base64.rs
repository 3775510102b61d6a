//! Base64 of JSON's bytes values (RFC 4648), in the standard or the URL alphabet, with or without padding, as proto3's JSON wants.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const PADDED: GeneralPurpose = lenient(DecodePaddingMode::RequireCanonical);
const UNPADDED: GeneralPurpose = lenient(DecodePaddingMode::RequireNone);

/// Some writers leave bits in the last digit that belong to no byte.
const fn lenient(padding: DecodePaddingMode) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true).with_decode_padding_mode(padding);
    GeneralPurpose::new(&base64::alphabet::STANDARD, config)
}

/// The bytes, or `None` where the text is not base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let standard = |digit| match digit {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let digits: Vec<u8> = text.bytes().map(standard).collect();
    let engine = if text.ends_with('=') { PADDED } else { UNPADDED };
    engine.decode(digits).ok()
}

/// The standard alphabet, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn both_alphabets_with_and_without_padding() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("Zg==", b"f"),
            ("Zg", b"f"),
            ("Zm8=", b"fo"),
            ("Zm9v", b"foo"),
            ("Zm9vYg==", b"foob"),
            ("+/-_", &[0xfb, 0xff, 0xbf]),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes), "{text}");
        }
        for bytes in [&b""[..], b"f", b"fo", b"foo", b"foob", &[0xfb, 0xff, 0xbf]] {
            assert_eq!(decode(&encode(bytes)).as_deref(), Some(bytes));
        }
        assert_eq!((encode(b"fo"), encode(b"foob")), ("Zm8=".to_owned(), "Zm9vYg==".to_owned()));
        for text in ["Z", "Zg=", "Zg===", "Z g=", "Zm9v=", "====", "Zm9v\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
