//! `push.v1.PushRequest`: profiles in pprof with the labels of their series.
//!
//! ```text
//! {"series":[{"labels":[{"name":"__name__","value":"process_cpu"},{"name":"service_name","value":"cart"}],
//!             "samples":[{"ID":"734fd599-…","rawProfile":"H4sIA…"}]}]}
//!
//! protobuf   PushRequest { series 1 }   RawProfileSeries { labels 1, samples 2 }   LabelPair { name 1, value 2 }   RawSample { raw_profile 1, ID 2 }
//! ```
//!
//! A profile is most often compressed with gzip, which its first two bytes say; whoever reads it unpacks it.

use std::borrow::Cow;

use serde::de::Unexpected;

use super::Codec;
use crate::base64;
use crate::error::DecodeError;
use crate::json::{self, Element, Json, List};
use crate::limits::Limits;
use crate::protobuf::{self, MessageCount, Reader, message, put_bytes, put_message};

/// A label for the way: what the spans in samples are to them, a code of [`LinkScope`](longpole_model::profile::LinkScope). Without it they are local
/// roots, as Pyroscope's SDKs label them.
pub const LINK_SCOPE: &str = "__link_scope__";

/// A label for the way: the sender has sent this profile before, and does not know whether it arrived.
pub const SENT_AGAIN: &str = "__sent_again__";

/// Profiles with the same labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushedSeries<'a> {
    /// Names and values, in the order in which they came.
    pub labels: Vec<(String, String)>,
    /// The profiles.
    pub profiles: Vec<RawProfile<'a>>,
}

/// A profile that is not read yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawProfile<'a> {
    /// Its id, a UUID as a rule; empty if the sender gave none.
    pub id: String,
    /// pprof, most often compressed.
    pub bytes: Cow<'a, [u8]>,
}

/// Reads a request.
///
/// # Errors
///
/// It is not well formed, or has more series, labels and profiles than its bytes allow.
pub fn decode(bytes: &[u8], codec: Codec) -> Result<Vec<PushedSeries<'_>>, DecodeError> {
    match codec {
        Codec::Protobuf => from_protobuf(bytes),
        Codec::Json => from_json(bytes),
    }
}

/// Writes a request in protobuf. Field numbers: `push/v1/push.proto`.
pub fn encode(series: &[PushedSeries<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for series in series {
        put_message(&mut out, 1, |out| {
            for (name, value) in &series.labels {
                put_message(out, 1, |out| {
                    put_bytes(out, 1, name.as_bytes());
                    put_bytes(out, 2, value.as_bytes());
                });
            }
            for profile in &series.profiles {
                put_message(out, 2, |out| {
                    put_bytes(out, 1, &profile.bytes);
                    put_bytes(out, 2, profile.id.as_bytes());
                });
            }
        });
    }
    out
}

/// `PushResponse`, which has no fields.
pub fn response(codec: Codec) -> &'static str {
    match codec {
        Codec::Protobuf => "",
        Codec::Json => "{}",
    }
}

fn from_protobuf(bytes: &[u8]) -> Result<Vec<PushedSeries<'_>>, DecodeError> {
    let (mut all, mut count) = (Vec::new(), MessageCount::of(bytes.len()));
    let mut reader = Reader::new(bytes).named("PushRequest");
    while let Some(field) = reader.next()? {
        if field.number == 1 {
            count.add(&reader, field.offset)?;
            all.push(series(message(&reader, field, "RawProfileSeries")?, &mut count)?);
        }
    }
    Ok(all)
}

fn series<'a>(mut reader: Reader<'a>, count: &mut MessageCount) -> Result<PushedSeries<'a>, DecodeError> {
    let mut series = PushedSeries::default();
    while let Some(field) = reader.next()? {
        match field.number {
            1 => {
                count.add(&reader, field.offset)?;
                let [name, value] = two(message(&reader, field, "LabelPair")?)?;
                series.labels.push((text(name), text(value)));
            }
            2 => {
                count.add(&reader, field.offset)?;
                let [raw, id] = two(message(&reader, field, "RawSample")?)?;
                series.profiles.push(RawProfile { id: text(id), bytes: Cow::Borrowed(raw) });
            }
            _ => {}
        }
    }
    Ok(series)
}

/// The first two fields of a message, which are texts or bytes.
fn two(mut reader: Reader<'_>) -> Result<[&[u8]; 2], DecodeError> {
    let mut two = [&[][..]; 2];
    while let Some(field) = reader.next()? {
        if let 1 | 2 = field.number {
            two[field.number as usize - 1] = protobuf::bytes(&reader, field)?;
        }
    }
    Ok(two)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

json::message!(PushMessage<'a>, Container, { series: List<SeriesMessage<'a>> = "series" });
json::message!(SeriesMessage<'a>, Value, { labels: List<LabelMessage<'a>> = "labels", samples: List<SampleMessage<'a>> = "samples" });
json::message!(LabelMessage<'a>, Value, { name: Cow<'a, str> = "name", value: Cow<'a, str> = "value" });
json::message!(SampleMessage<'a>, Value, { raw_profile: Base64 = "rawProfile" | "raw_profile", id: Cow<'a, str> = "ID" | "id" });

impl Element for SeriesMessage<'_> {}
impl Element for LabelMessage<'_> {}
impl Element for SampleMessage<'_> {}

#[derive(Default)]
pub(crate) struct Base64(Vec<u8>);

impl<'de> Json<'de> for Base64 {
    const EXPECTED: &'static str = "a profile in base64";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        base64::decode(&text).map(Base64).ok_or_else(|| E::invalid_value(Unexpected::Other("another text"), &Self::EXPECTED))
    }
}

fn from_json(bytes: &[u8]) -> Result<Vec<PushedSeries<'_>>, DecodeError> {
    let (message, _) = json::parse_request::<PushMessage<'_>>(bytes, &Limits::default())?;
    let series = message.series.kept.into_iter().map(|series| {
        let labels = series.labels.kept.into_iter().map(|label| (label.name.into_owned(), label.value.into_owned()));
        let profile = |sample: SampleMessage<'_>| RawProfile { id: sample.id.into_owned(), bytes: Cow::Owned(sample.raw_profile.0) };
        PushedSeries { labels: labels.collect(), profiles: series.samples.kept.into_iter().map(profile).collect() }
    });
    Ok(series.collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn label(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    fn expected() -> Vec<PushedSeries<'static>> {
        let labels = vec![label("__name__", "process_cpu"), label("service_name", "cart")];
        let profiles = vec![RawProfile { id: "734fd599".to_owned(), bytes: Cow::Borrowed(b"\x1f\x8b\xff") }];
        vec![PushedSeries { labels, profiles }]
    }

    #[test]
    fn a_push_in_both_encodings() {
        let bytes = encode(&expected());
        assert_eq!(decode(&bytes, Codec::Protobuf).unwrap(), expected());
        for profile in [r#""ID":"734fd599","rawProfile":"H4v/""#, r#""id":"734fd599","raw_profile":"H4v_""#] {
            let text = format!(
                r#"{{"series":[{{"labels":[{{"name":"__name__","value":"process_cpu"}},{{"name":"service_name","value":"cart"}}],
                    "samples":[{{{profile}}}],"annotations":[]}}]}}"#
            );
            assert_eq!(decode(text.as_bytes(), Codec::Json).unwrap(), expected(), "{profile}");
        }
        assert_eq!((decode(b"", Codec::Protobuf), decode(b"{}", Codec::Json)), (Ok(Vec::new()), Ok(Vec::new())));
        assert_eq!((response(Codec::Protobuf), response(Codec::Json)), ("", "{}"));
    }

    #[test]
    fn a_broken_push_says_where() {
        let said = |bytes: &[u8], codec| decode(bytes, codec).unwrap_err().to_string();
        let bytes = encode(&expected());
        assert_eq!(said(&bytes[..bytes.len() - 1], Codec::Protobuf), "bytes end inside a field, in the PushRequest message at byte 0");
        assert_eq!(
            said(b"\x0a\x02\x08\x01", Codec::Protobuf),
            "unexpected wire type of field 1, in the RawProfileSeries message at byte 2"
        );
        let text = br#"{"series":[{"samples":[{"rawProfile":"*"}]}]}"#;
        assert_eq!(said(text, Codec::Json), "invalid value: another text, expected a profile in base64, at line 1 column 40");
    }

    #[test]
    fn a_push_has_no_more_messages_than_its_bytes_allow() {
        // A series with 100,000 labels that say nothing: 2 bytes here, 48 in memory.
        let mut bytes = Vec::new();
        put_message(&mut bytes, 1, |out| (0..100_000).for_each(|_| put_message(out, 1, |_| ())));
        let refused = decode(&bytes, Codec::Protobuf).unwrap_err().to_string();
        assert!(refused.starts_with("more than 65536 messages"), "{refused}");
        let text = format!(r#"{{"series":[{}{{}}]}}"#, "{},".repeat(200_000));
        let refused = decode(text.as_bytes(), Codec::Json).unwrap_err().to_string();
        assert!(refused.contains("nearly all of them say nothing"), "{refused}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            series in prop::collection::vec((prop::collection::vec((".{0,8}", ".{0,8}"), 0..3), prop::collection::vec(any::<u8>(), 1..9)), 0..4)
        ) {
            let of = |(labels, bytes): (Vec<(String, String)>, Vec<u8>)| {
                PushedSeries { labels, profiles: vec![RawProfile { id: String::new(), bytes: Cow::Owned(bytes) }] }
            };
            let series: Vec<PushedSeries<'_>> = series.into_iter().map(of).collect();
            let bytes = encode(&series);
            prop_assert_eq!(decode(&bytes, Codec::Protobuf).unwrap(), series);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes, Codec::Protobuf);
            let _ = decode(&bytes, Codec::Json);
        }
    }
}
