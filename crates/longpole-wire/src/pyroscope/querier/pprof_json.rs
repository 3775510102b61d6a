//! pprof as proto3's JSON, for clients that query a profile in that encoding.
//!
//! ```text
//! {"sampleType":[{"type":"1","unit":"2"}],"sample":[{"locationId":["1"],"value":["3"]}], …,"stringTable":["","samples","count","main"]}
//! ```
//!
//! Fields are written in the order of their numbers, and those with the default value are left out, as from any writer of proto3. pprof
//! without unknown fields comes back as it was.

use crate::error::DecodeError;
use crate::json_writer::{push_display, write_text};
use crate::protobuf::{Field, Reader, Value, unexpected};

/// What a field holds.
#[derive(Clone, Copy)]
enum PprofKind {
    /// A 64-bit integer with a sign, or without: a text in JSON.
    Integer,
    Unsigned,
    Integers,
    Unsigneds,
    Flag,
    Texts,
    Message(&'static MessageFields),
    Messages(&'static MessageFields),
}

/// Fields of a message, the first with the number 1.
struct MessageFields {
    name: &'static str,
    fields: &'static [(&'static str, PprofKind)],
}

const VALUE_TYPE: MessageFields =
    MessageFields { name: "ValueType", fields: &[("type", PprofKind::Integer), ("unit", PprofKind::Integer)] };

const LABEL: MessageFields = MessageFields {
    name: "Label",
    fields: &[("key", PprofKind::Integer), ("str", PprofKind::Integer), ("num", PprofKind::Integer), ("numUnit", PprofKind::Integer)],
};

const SAMPLE: MessageFields = MessageFields {
    name: "Sample",
    fields: &[("locationId", PprofKind::Unsigneds), ("value", PprofKind::Integers), ("label", PprofKind::Messages(&LABEL))],
};

const MAPPING: MessageFields = MessageFields {
    name: "Mapping",
    fields: &[
        ("id", PprofKind::Unsigned),
        ("memoryStart", PprofKind::Unsigned),
        ("memoryLimit", PprofKind::Unsigned),
        ("fileOffset", PprofKind::Unsigned),
        ("filename", PprofKind::Integer),
        ("buildId", PprofKind::Integer),
        ("hasFunctions", PprofKind::Flag),
        ("hasFilenames", PprofKind::Flag),
        ("hasLineNumbers", PprofKind::Flag),
        ("hasInlineFrames", PprofKind::Flag),
    ],
};

const LINE: MessageFields = MessageFields { name: "Line", fields: &[("functionId", PprofKind::Unsigned), ("line", PprofKind::Integer)] };

const LOCATION: MessageFields = MessageFields {
    name: "Location",
    fields: &[
        ("id", PprofKind::Unsigned),
        ("mappingId", PprofKind::Unsigned),
        ("address", PprofKind::Unsigned),
        ("line", PprofKind::Messages(&LINE)),
        ("isFolded", PprofKind::Flag),
    ],
};

const FUNCTION: MessageFields = MessageFields {
    name: "Function",
    fields: &[
        ("id", PprofKind::Unsigned),
        ("name", PprofKind::Integer),
        ("systemName", PprofKind::Integer),
        ("filename", PprofKind::Integer),
        ("startLine", PprofKind::Integer),
    ],
};

const PROFILE: MessageFields = MessageFields {
    name: "Profile",
    fields: &[
        ("sampleType", PprofKind::Messages(&VALUE_TYPE)),
        ("sample", PprofKind::Messages(&SAMPLE)),
        ("mapping", PprofKind::Messages(&MAPPING)),
        ("location", PprofKind::Messages(&LOCATION)),
        ("function", PprofKind::Messages(&FUNCTION)),
        ("stringTable", PprofKind::Texts),
        ("dropFrames", PprofKind::Integer),
        ("keepFrames", PprofKind::Integer),
        ("timeNanos", PprofKind::Integer),
        ("durationNanos", PprofKind::Integer),
        ("periodType", PprofKind::Message(&VALUE_TYPE)),
        ("period", PprofKind::Integer),
        ("comment", PprofKind::Integers),
        ("defaultSampleType", PprofKind::Integer),
    ],
};

/// pprof, not compressed, as JSON.
pub(super) fn pprof_json(bytes: &[u8]) -> Result<String, DecodeError> {
    let mut out = String::with_capacity(bytes.len() * 2);
    write(&mut out, Reader::new(bytes), &PROFILE)?;
    Ok(out)
}

/// The messages nest three deep: the call stack is as deep.
fn write(out: &mut String, message: Reader<'_>, shape: &'static MessageFields) -> Result<(), DecodeError> {
    let message = message.named(shape.name);
    // Members of a list may stand apart, and JSON wants them together: their texts are gathered by field.
    let mut values: Vec<String> = vec![String::new(); shape.fields.len()];
    let mut reader = message;
    while let Some(field) = reader.next()? {
        let place = (field.number as usize).checked_sub(1).and_then(|place| shape.fields.get(place).map(|(_, kind)| (place, *kind)));
        if let Some((place, kind)) = place {
            write_value(&mut values[place], kind, &reader, field)?;
        }
    }
    out.push('{');
    let mut is_first = true;
    for ((name, kind), value) in shape.fields.iter().zip(values) {
        if value.is_empty() {
            continue;
        }
        out.push_str(if std::mem::replace(&mut is_first, false) { "" } else { "," });
        write_text(out, name);
        out.push(':');
        match kind {
            PprofKind::Integers | PprofKind::Unsigneds | PprofKind::Texts | PprofKind::Messages(_) => {
                out.push('[');
                out.push_str(&value);
                out.push(']');
            }
            _ => out.push_str(&value),
        }
    }
    out.push('}');
    Ok(())
}

fn write_value(out: &mut String, kind: PprofKind, reader: &Reader<'_>, field: Field<'_>) -> Result<(), DecodeError> {
    let number = |out: &mut String, number: u64, has_sign: bool| match has_sign {
        true => push_display(out, format_args!("\"{}\"", number.cast_signed())),
        false => push_display(out, format_args!("\"{number}\"")),
    };
    match (kind, field.value) {
        (PprofKind::Integer | PprofKind::Unsigned, Value::Varint(value)) => {
            out.clear();
            if value != 0 {
                number(out, value, matches!(kind, PprofKind::Integer));
            }
        }
        (PprofKind::Flag, Value::Varint(value)) => {
            out.clear();
            out.push_str(if value == 0 { "" } else { "true" });
        }
        (PprofKind::Integers | PprofKind::Unsigneds, Value::Varint(value)) => {
            comma(out);
            number(out, value, matches!(kind, PprofKind::Integers));
        }
        (PprofKind::Integers | PprofKind::Unsigneds, Value::Bytes(mut packed)) => {
            while let Some(value) = packed.next_packed()? {
                comma(out);
                number(out, value, matches!(kind, PprofKind::Integers));
            }
        }
        (PprofKind::Texts, Value::Bytes(text)) => {
            comma(out);
            write_text(out, &String::from_utf8_lossy(text.bytes()));
        }
        (PprofKind::Message(shape), Value::Bytes(inner)) => {
            out.clear();
            write(out, inner, shape)?;
        }
        (PprofKind::Messages(shape), Value::Bytes(inner)) => {
            comma(out);
            write(out, inner, shape)?;
        }
        _ => return Err(unexpected(reader, field)),
    }
    Ok(())
}

fn comma(out: &mut String) {
    if !out.is_empty() {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::protobuf::{put_integer, put_message, put_set_bytes};

    #[test]
    fn a_small_profile_as_json() {
        let mut bytes = Vec::new();
        put_message(&mut bytes, 1, |out| {
            put_integer(out, 1, 1);
            put_integer(out, 2, 2);
        });
        put_message(&mut bytes, 2, |out| {
            put_set_bytes(out, 1, &[2, 1]);
            put_integer(out, 2, (-3i64).cast_unsigned());
            put_message(out, 3, |out| put_integer(out, 1, 3));
        });
        put_message(&mut bytes, 4, |out| {
            put_integer(out, 1, 1);
            put_integer(out, 3, u64::MAX);
            put_message(out, 4, |out| put_integer(out, 1, 1));
        });
        // Members of a list that stand apart.
        put_set_bytes(&mut bytes, 6, b"");
        put_integer(&mut bytes, 9, 7);
        put_set_bytes(&mut bytes, 6, b"a\"b");
        let expected = r#"{"sampleType":[{"type":"1","unit":"2"}],"sample":[{"locationId":["2","1"],"value":["-3"],"label":[{"key":"3"}]}],"location":[{"id":"1","address":"18446744073709551615","line":[{"functionId":"1"}]}],"stringTable":["","a\"b"],"timeNanos":"7"}"#;
        assert_eq!(pprof_json(&bytes).unwrap(), expected);
        assert_eq!(pprof_json(b"\x08\x01").unwrap_err().to_string(), "unexpected wire type of field 1, in the Profile message at byte 0");
    }

    #[test]
    fn a_profile_of_go_is_json() {
        let bytes = include_bytes!("../../../../../fixtures/pprof/go-cpu.pb");
        let text = pprof_json(bytes).unwrap();
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["stringTable"][0], "");
        assert_eq!(read["periodType"].as_object().unwrap().len(), 2);
        assert!(read["sample"].as_array().unwrap().iter().all(|sample| sample["value"].as_array().unwrap().len() == 2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_json_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(text) = pprof_json(&bytes) {
                prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok());
            }
        }
    }
}
