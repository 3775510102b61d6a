//! Base64 of JSON or YAML that has credentials in it: `.dockerconfigjson`, the key file of a service account, a kubeconfig.
//!
//! ```text
//! eyJhdXRocyI6eyJyLmV4YW1wbGUi… ── decode ─► {"auths":{"r.example":{"password":"…"}}} ── as a text ─► has a credential: all of it goes
//! ```

use std::ops::Range;

use super::find_all;
use super::scan::Scan;
use crate::base64;
use crate::redact::bytes::position;
use crate::redact::token_formats::{is_base64, wrapped_base64};

/// How the base64 of an object, of a list of objects and of YAML begins: `{"`, `{\n`, `{\t`, `{\r`, `[{"`, `[\n`, `apiV`, `---\n`.
const BEGINNINGS: &[&[u8]] = &[b"eyJ", b"ewo", b"ewk", b"ew0", b"W3si", b"Wwog", b"YXBpV", b"LS0tC"];

/// What longpole decodes of one. A kubeconfig has two certificates before its key.
const DECODED_BYTES_MAX: usize = 16 << 10;

/// Members of the token of a tunnel at Cloudflare: account, tunnel and secret.
const TUNNEL: [&str; 3] = ["{\"a\":\"", ",\"t\":\"", ",\"s\":\""];

impl Scan<'_> {
    /// Hides the base64 that begins with this word, if what it encodes has a credential.
    pub(super) fn encoded(&mut self, word: Range<usize>) {
        let is_one = BEGINNINGS.iter().any(|begin| self.bytes[word.start..word.end].starts_with(begin));
        if !is_one || word.start < self.encoded_to || self.names.is_decoded || self.is_spent() {
            return;
        }
        let (bytes, start) = (self.bytes, word.start);
        self.encoded_to = position(bytes, start, |byte| !is_base64(byte));
        self.names.steps.spend(self.encoded_to - start);
        let digits = self.text[start..self.encoded_to].trim_end_matches('=');
        let digits = &digits[..digits.len().min(DECODED_BYTES_MAX / 3 * 4)];
        // One digit holds no byte.
        let digits = &digits[..digits.len() - usize::from(digits.len() % 4 == 1)];
        let Some(decoded) = base64::decode(digits) else { return };
        let inside = decoded.utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let is_tunnel = inside.starts_with(TUNNEL[0]) && TUNNEL.iter().all(|member| inside.contains(member));
        if is_tunnel || self.has_credential(inside) {
            self.hide(start..start + wrapped_base64(&bytes[start..]));
        }
    }

    /// Whether another text, which this one encodes, has a credential. It takes of the same steps.
    fn has_credential(&mut self, text: &str) -> bool {
        // Searches in this text say nothing about that one.
        let memo = std::mem::take(&mut self.names.memo);
        self.names.is_decoded = true;
        let mut found = Vec::new();
        find_all(text, self.names, &mut found);
        self.names.is_decoded = false;
        self.names.memo = memo;
        self.names.steps.looked = true;
        !found.is_empty()
    }
}
