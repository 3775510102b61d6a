//! Engine events of Pulumi: what `--event-log tcp://…` streams, one JSON text a message, reduced to which resource it is
//! about.
//!
//! ```text
//! {"sequence":7,"timestamp":1774510200,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:…",
//!  "type":"aws:s3/bucket:Bucket","new":{"parent":"urn:…","inputs":{…}, …},"provider":"urn:…"}}}
//! ```
//!
//! Inputs and outputs are passed over by the reader and never become values of ours.

use std::borrow::Cow;

use longpole_model::{ResourceEvent, ResourceStep, Timestamp};
use serde::de::{MapAccess, SeqAccess};

use crate::error::DecodeError;
use crate::json::{self, Context, Json, message};
use crate::limits::Limits;

/// What the engine tells about a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Number in its stream, from 0; every stream of a command counts for itself.
    pub sequence: i64,
    /// What. Its time is the engine's, in whole seconds: the arrival of the message is more precise.
    pub event: ResourceEvent,
}

message!(Event<'de>, Owner, {
    sequence: i64 = "sequence",
    timestamp: i64 = "timestamp",
    resource_pre_event: Option<Resource<'de>> = "resourcePreEvent",
    res_outputs_event: Option<Resource<'de>> = "resOutputsEvent",
    res_op_failed_event: Option<Resource<'de>> = "resOpFailedEvent",
});
message!(Resource<'de>, Container, {
    metadata: Metadata<'de> = "metadata",
});
message!(Metadata<'de>, Container, {
    op: Cow<'de, str> = "op",
    urn: Cow<'de, str> = "urn",
    resource_type: Cow<'de, str> = "type",
    provider: Cow<'de, str> = "provider",
    old: State<'de> = "old",
    new: State<'de> = "new",
});
message!(State<'de>, Container, {
    parent: Cow<'de, str> = "parent",
    provider: Cow<'de, str> = "provider",
    dependencies: Texts<'de> = "dependencies",
});

/// A list of texts.
#[derive(Default)]
pub(crate) struct Texts<'de>(Vec<Cow<'de, str>>);

impl<'de> Json<'de> for Texts<'de> {
    const EXPECTED: &'static str = "a list of strings";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = json::element(&mut list, context)? {
            context.count_value()?;
            texts.push(text);
        }
        Ok(Texts(texts))
    }

    fn object<A: MapAccess<'de>>(mut object: A, _context: Context<'_>) -> Result<Self, A::Error> {
        while object.next_entry::<serde::de::IgnoredAny, serde::de::IgnoredAny>()?.is_some() {}
        Ok(Texts::default())
    }
}

/// The JSON text in a message of `pulumirpc.Events/StreamEvents`: field 1, which is its only one.
pub fn text_of_message(message: &[u8]) -> Option<&str> {
    let (key, mut rest) = message.split_first()?;
    let (mut length, mut shift) = (0u32, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        rest = after;
        length |= u32::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    (*key == 0x0a && rest.len() == length as usize).then_some(rest).and_then(|text| std::str::from_utf8(text).ok())
}

/// Reads one event. `None` for those that are not about a resource.
///
/// # Errors
///
/// The text is no JSON, or no event.
pub fn parse(json: &str) -> Result<Option<Told>, DecodeError> {
    let event: Event<'_> = json::parse(json.as_bytes(), &Limits::default())?;
    let steps = [
        (ResourceStep::Pre, event.resource_pre_event),
        (ResourceStep::Outputs, event.res_outputs_event),
        (ResourceStep::Failed, event.res_op_failed_event),
    ];
    let Some((step, metadata)) = steps.into_iter().find_map(|(step, event)| Some((step, event?.metadata))) else { return Ok(None) };
    // A deleted resource has only an old state.
    let first =
        |new: Cow<'_, str>, old: Cow<'_, str>| Some(if new.is_empty() { old } else { new }.into_owned()).filter(|text| !text.is_empty());
    let dependencies = if metadata.new.dependencies.0.is_empty() { metadata.old.dependencies } else { metadata.new.dependencies };
    let provider = first(metadata.provider, Cow::Borrowed("")).or_else(|| first(metadata.new.provider, metadata.old.provider));
    let about = ResourceEvent {
        time: Timestamp(event.timestamp.saturating_mul(1_000_000_000).max(0)),
        step,
        op: metadata.op.into_owned(),
        urn: metadata.urn.into_owned(),
        resource_type: metadata.resource_type.into_owned(),
        dependencies: dependencies.0.into_iter().map(Cow::into_owned).collect(),
        parent: first(metadata.new.parent, metadata.old.parent),
        provider,
    };
    Ok(Some(Told { sequence: event.sequence, event: about }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_about_a_resource_is_reduced_to_its_identity() {
        let text = r#"{"sequence":7,"timestamp":1774510200,"resourcePreEvent":{"metadata":{"op":"create","urn":"urn:pulumi:dev::p::a:b:C::n",
            "type":"a:b:C","old":null,"new":{"type":"a:b:C","urn":"urn:pulumi:dev::p::a:b:C::n","custom":true,"id":"",
            "parent":"urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev","inputs":{"password":"hunter2"},"outputs":null,
            "provider":"urn:pulumi:dev::p::pulumi:providers:a::default::1"},"provider":"urn:pulumi:dev::p::pulumi:providers:a::default::1"},
            "planning":true}}"#;
        let Told { sequence, event } = parse(text).unwrap().unwrap();
        assert!(!format!("{event:?}").contains("hunter2"));
        assert_eq!((sequence, event.time.unix_nanos(), event.step), (7, 1_774_510_200_000_000_000, ResourceStep::Pre));
        assert_eq!((&event.op[..], &event.resource_type[..], &event.urn[..]), ("create", "a:b:C", "urn:pulumi:dev::p::a:b:C::n"));
        assert_eq!(event.parent.as_deref(), Some("urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev"));
        assert_eq!(event.provider.as_deref(), Some("urn:pulumi:dev::p::pulumi:providers:a::default::1"));
        assert!(event.dependencies.is_empty());
    }

    #[test]
    fn the_end_of_a_deletion_is_known_by_its_old_state() {
        let text = r#"{"sequence":9,"resOutputsEvent":{"metadata":{"op":"delete","urn":"u","type":"t",
            "old":{"parent":"p","dependencies":["d","e"]},"new":null}}}"#;
        let event = parse(text).unwrap().unwrap().event;
        assert_eq!((event.step, event.parent.as_deref(), event.provider), (ResourceStep::Outputs, Some("p"), None));
        assert_eq!(event.dependencies, ["d", "e"]);
    }

    #[test]
    fn a_message_gives_its_text_and_nothing_else_does() {
        assert_eq!(text_of_message(b"\x0a\x02{}"), Some("{}"));
        let long = [&b"\x0a\xc8\x01"[..], &[b'x'; 200]].concat();
        assert_eq!(text_of_message(&long).map(str::len), Some(200));
        for broken in [&b""[..], b"\x0a", b"\x0a\x03{}", b"\x12\x02{}", b"\x0a\xff\xff\xff\xff\xff\xff\xff", b"\x0a\x01\xff"] {
            assert_eq!(text_of_message(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn other_events_are_none_and_nonsense_is_an_error() {
        assert_eq!(parse(r#"{"sequence":0,"timestamp":1,"preludeEvent":{"config":{"a":"b"}}}"#), Ok(None));
        assert_eq!(parse(r#"{"sequence":0,"timestamp":1,"resourcePreEvent":null,"cancelEvent":{}}"#), Ok(None));
        assert!(parse("{").is_err() && parse("[]").is_err() && parse("").is_err());
    }
}
