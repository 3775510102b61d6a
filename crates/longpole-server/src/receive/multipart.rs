//! The parts of a form, as Pyroscope's clients send a profile to `/ingest`: `profile`, and `sample_type_config`, which says what its numbers are;
//! older ones also `prev_profile`, the profile before; of Java `jfr` and `labels`.

use std::borrow::Cow;
use std::convert::Infallible;

use bytes::Bytes;
use futures_util::FutureExt;
use multer::Multipart;

/// FormParts that a form may have. Clients send three.
const PARTS_MAX: usize = 16;

/// The parts of a profile.
#[derive(Debug, Default)]
pub(super) struct FormParts<'a> {
    /// The profile.
    pub(super) profile: Cow<'a, [u8]>,
    /// The one before it, of clients that send what was counted since the start of a program.
    pub(super) previous: Option<Vec<u8>>,
    /// What its numbers are, in JSON.
    pub(super) sample_types: Option<Vec<u8>>,
    /// The labels of a recording of Java.
    pub(super) labels: Vec<u8>,
}

/// Where the parts of a form begin, if a request is one.
pub(super) fn boundary_of(content_type: Option<&str>) -> Option<String> {
    multer::parse_boundary(content_type?).ok()
}

impl FormParts<'_> {
    /// Reads a whole form.
    pub(super) fn of(bytes: &[u8], boundary: &str) -> Result<FormParts<'static>, String> {
        let whole = Bytes::copy_from_slice(bytes);
        let mut form = Multipart::new(futures_util::stream::iter([Ok::<_, Infallible>(whole)]), boundary);
        let mut parts = FormParts::default();
        let mut has_profile = false;
        for _ in 0..PARTS_MAX {
            // All of it is here, so nothing has to wait.
            let next = form.next_field().now_or_never().ok_or("the form breaks off")?;
            let Some(field) = next.map_err(|error| error.to_string())? else {
                return if has_profile { Ok(parts) } else { Err("the form has no part `profile`".to_owned()) };
            };
            let name = field.name().unwrap_or_default().to_owned();
            let content = field.bytes().now_or_never().ok_or("the form breaks off")?.map_err(|error| error.to_string())?;
            match name.as_str() {
                "profile" | "jfr" => (parts.profile, has_profile) = (Cow::Owned(content.to_vec()), true),
                "prev_profile" => parts.previous = Some(content.to_vec()),
                "labels" => parts.labels = content.to_vec(),
                "sample_type_config" => parts.sample_types = Some(content.to_vec()),
                _ => {}
            }
        }
        Err(format!("the form has more than {PARTS_MAX} parts"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &str = "--x\r\nContent-Disposition: form-data; name=\"profile\"; filename=\"p\"\r\n\r\nabc\r\n--x\r\nContent-Disposition: form-data; name=\"sample_type_config\"\r\n\r\n{}\r\n--x--\r\n";

    #[test]
    fn a_form_has_its_parts() {
        let parts = FormParts::of(FORM.as_bytes(), "x").unwrap();
        assert_eq!((&*parts.profile, parts.sample_types.as_deref()), (&b"abc"[..], Some(&b"{}"[..])));
        assert_eq!(boundary_of(Some("multipart/form-data; boundary=x")).as_deref(), Some("x"));
        assert_eq!(boundary_of(Some("application/octet-stream")), None);
    }

    #[test]
    fn a_form_that_is_none_is_an_error() {
        assert!(FormParts::of(b"", "x").is_err());
        assert!(FormParts::of(&FORM.as_bytes()[..60], "x").is_err());
        let other = FORM.replace("name=\"profile\"", "name=\"file\"");
        assert_eq!(FormParts::of(other.as_bytes(), "x").unwrap_err(), "the form has no part `profile`");
    }
}
