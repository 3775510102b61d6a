//! Attributes in two columns.
//!
//! `attributes` is a map of text to text, for people and for SQL: `attributes['http.route']`. Its pairs stand in the
//! order they were sent. `attributes_json` keeps the types: OTLP's JSON of the same pairs, such as
//! `[{"key":"retries","value":{"intValue":"3"}}]`; NULL where every value is a text, because then the map says all.
//!
//! | value | in the map | in the JSON |
//! |---|---|---|
//! | `a b` | `a b` | `{"stringValue":"a b"}` |
//! | 3 | `3` | `{"intValue":"3"}` |
//! | 0.5 | `0.5` | `{"doubleValue":"0.5"}`: as a text, so that every bit of it survives any JSON reader |
//! | true | `true` | `{"boolValue":true}` |
//! | bytes c0 ff ee | `c0ffee` | `{"bytesValue":"wP/u"}` |
//! | list | `["a",3]` | `{"arrayValue":{"values":[…]}}` |
//! | pairs | `{"a":3}` | `{"kvlistValue":{"values":[{"key":"a","value":…}]}}` |
//! | nothing set | empty | `{}` |

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, MapArray, StringViewArray};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use longpole_model::{Attribute, AttributeValue, Attributes, Text};
use serde_json::Value;

use super::array::TextMaps;
use super::attributes_json::pairs_from_json;
use super::batch::{BadRows, Rows, at};
use super::{Kind, Table};
use crate::memory::budget::Budget;
use crate::memory::kept_texts::KeptTexts;
use crate::memory::needs::Needs;

/// Values inside each other that can be read back: serde_json stops at 128 brackets, and one level of pairs takes four.
/// The decoders of `wire` refuse deeper values, so what stands below is replaced only for a caller of another kind.
const NESTING_MAX: u32 = 32;

const TOO_DEEP: &str = "nested too deep";

/// The two columns of these rows.
pub(super) fn columns<'a>(rows: impl Iterator<Item = &'a Attributes>) -> (ArrayRef, ArrayRef) {
    let mut maps = TextMaps::new();
    let mut typed = StringBuilder::new();
    // One memory for all values: most of them are a few bytes.
    let mut scratch = String::new();
    for attributes in rows {
        for attribute in attributes.iter() {
            scratch.clear();
            maps.pair(&attribute.key, text(&mut scratch, &attribute.value));
        }
        maps.end_of_row();
        if attributes.iter().all(|attribute| matches!(attribute.value, AttributeValue::Str(_))) {
            typed.append_null();
        } else {
            scratch.clear();
            pairs_json(&mut scratch, &attributes.0, 1);
            typed.append_value(&scratch);
        }
    }
    (maps.finish(), Arc::new(typed.finish()))
}

/// What a parsed object and another value of JSON take, while their row is read.
const JSON_OBJECT_BYTES: u64 = 640;
const JSON_VALUE_BYTES: u64 = 64;

/// What the JSON of a row takes while it is read, at most.
fn parsed_bytes(json: &str) -> u64 {
    json.bytes().fold(json.len() as u64, |sum, byte| match byte {
        b'{' => sum + JSON_OBJECT_BYTES,
        b'[' | b',' => sum + JSON_VALUE_BYTES,
        _ => sum,
    })
}

/// JSON up to this length is taken to be nothing but objects when it is written: to look at each byte of it takes longer than to write it.
const QUICK_JSON_BYTES: usize = 4 << 10;

/// What the attributes of a row take for a moment when these columns of a table are read: those of the row that takes the most.
pub(crate) fn passing_bytes(table: &Table, columns: &[ArrayRef]) -> u64 {
    let of_column = |(column, array): (&super::Column, &ArrayRef)| match column.kind {
        Kind::TextMap => {
            let maps = array.as_map();
            (0..maps.len()).map(|row| maps.value_length(row).cast_unsigned() as usize * size_of::<Attribute>()).max().unwrap_or(0) as u64
        }
        Kind::Text if column.name.ends_with("attributes_json") => {
            let bytes = |json: &str| match json.len() {
                length @ ..=QUICK_JSON_BYTES => length as u64 * (1 + JSON_OBJECT_BYTES),
                _ => parsed_bytes(json),
            };
            array.as_string::<i32>().iter().flatten().map(bytes).max().unwrap_or(0)
        }
        _ => 0,
    };
    table.columns.iter().zip(columns).map(of_column).max().unwrap_or(0)
}

/// Bytes that attributes take in memory without their texts.
pub(super) fn weight(attributes: &Attributes) -> u64 {
    attributes.iter().map(weight_of).sum()
}

fn weight_of(attribute: &Attribute) -> u64 {
    size_of::<Attribute>() as u64 + weight_of_value(&attribute.value)
}

/// As deep as [`pairs_from_json`], and that as the JSON that was read.
fn weight_of_value(value: &AttributeValue) -> u64 {
    match value {
        AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_) | AttributeValue::Str(_) => 0,
        AttributeValue::Bytes(bytes) => bytes.len() as u64,
        AttributeValue::Array(values) => values.iter().map(|value| size_of::<AttributeValue>() as u64 + weight_of_value(value)).sum(),
        AttributeValue::KeyValues(pairs) => pairs.iter().map(weight_of).sum(),
    }
}

/// Counts attributes that are written, as [`attributes_at`] counts them when it reads them.
pub(super) fn count(needs: &mut Needs, texts: &mut KeptTexts, attributes: &Attributes) {
    needs.keep(weight(attributes));
    count_texts(texts, &attributes.0);
    needs.keep(texts.take_uncounted());
}

fn count_texts(texts: &mut KeptTexts, attributes: &[Attribute]) {
    for attribute in attributes {
        texts.count(&attribute.key);
        count_texts_of(texts, &attribute.value);
    }
}

fn count_texts_of(texts: &mut KeptTexts, value: &AttributeValue) {
    match value {
        AttributeValue::Str(text) => texts.count(text),
        AttributeValue::Array(values) => values.iter().for_each(|value| count_texts_of(texts, value)),
        AttributeValue::KeyValues(pairs) => count_texts(texts, pairs),
        AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_) | AttributeValue::Bytes(_) => {
        }
    }
}

/// Counts a text of a row that is written.
pub(super) fn count_text(needs: &mut Needs, texts: &mut KeptTexts, text: &Text) {
    texts.count(text);
    needs.keep(texts.take_uncounted());
}

/// Reads a text of a row, and counts what it takes.
pub(super) fn kept_text(budget: &Budget, texts: &mut KeptTexts, words: &str) -> Rows<Text> {
    let text = texts.text(words);
    budget.take(texts.take_uncounted())?;
    Ok(text)
}

/// Reads one row of the two columns, and counts what it takes.
pub(super) fn attributes_at(
    budget: &Budget,
    texts: &mut KeptTexts,
    maps: &MapArray,
    typed: &StringViewArray,
    row: usize,
) -> Rows<Attributes> {
    let attributes = passing_attributes_at(budget, texts, maps, typed, row)?;
    budget.take(weight(&attributes))?;
    Ok(attributes)
}

/// The same for attributes that rows may share: the caller counts those that it keeps, without their texts.
pub(super) fn passing_attributes_at(
    budget: &Budget,
    texts: &mut KeptTexts,
    maps: &MapArray,
    typed: &StringViewArray,
    row: usize,
) -> Rows<Attributes> {
    if let Some(json) = at(typed, row, |row| typed.value(row)) {
        budget.holds(parsed_bytes(json))?;
        let pairs = pairs_from_json(texts, json).map_err(|error| BadRows(format!("attributes as JSON: {error}")))?;
        budget.take(texts.take_uncounted())?;
        return Ok(Attributes(pairs));
    }
    // Not `maps.value`, which makes an array for each row.
    let offsets = maps.value_offsets();
    let pairs = offsets[row].cast_unsigned() as usize..offsets[row + 1].cast_unsigned() as usize;
    budget.holds((pairs.len() * size_of::<Attribute>()) as u64)?;
    let texts_of = |column: &ArrayRef| column.as_string_view_opt().cloned().ok_or_else(|| BadRows("attributes hold no strings".into()));
    let (keys, values) = (texts_of(maps.keys())?, texts_of(maps.values())?);
    let pair = |pair| Attribute { key: texts.text(keys.value(pair)), value: AttributeValue::Str(texts.text(values.value(pair))) };
    let attributes = Attributes(pairs.map(pair).collect());
    budget.take(texts.take_uncounted())?;
    Ok(attributes)
}

/// A value as the map shows it; `scratch` is empty and may hold it.
fn text<'t>(scratch: &'t mut String, value: &'t AttributeValue) -> &'t str {
    match value {
        AttributeValue::Empty => {}
        AttributeValue::Str(text) => return text,
        AttributeValue::Bool(truth) => return word_of(*truth),
        AttributeValue::Bytes(bytes) => hex(scratch, bytes),
        other => plain_json(scratch, other, 1),
    }
    scratch
}

fn word_of(truth: bool) -> &'static str {
    if truth { "true" } else { "false" }
}

fn hex(out: &mut String, bytes: &[u8]) {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or_default();
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
}

/// Writes what has a textual form; a text takes everything.
fn put(out: &mut String, value: std::fmt::Arguments<'_>) {
    let written = out.write_fmt(value);
    debug_assert!(written.is_ok());
}

fn quoted(out: &mut String, text: &str) {
    if text.bytes().any(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')) {
        return put(out, format_args!("{}", Value::from(text)));
    }
    out.push('"');
    out.push_str(text);
    out.push('"');
}

fn list<T>(out: &mut String, brackets: [char; 2], items: &[T], mut item: impl FnMut(&mut String, &T)) {
    out.push(brackets[0]);
    for (number, it) in items.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        item(out, it);
    }
    out.push(brackets[1]);
}

/// A value as people write JSON.
fn plain_json(out: &mut String, value: &AttributeValue, depth: u32) {
    match value {
        AttributeValue::Empty => out.push_str("null"),
        AttributeValue::Str(text) => quoted(out, text),
        AttributeValue::Bool(truth) => out.push_str(word_of(*truth)),
        AttributeValue::Int(number) => put(out, format_args!("{number}")),
        AttributeValue::Double(number) => put(out, format_args!("{number:?}")),
        AttributeValue::Bytes(bytes) => {
            out.push('"');
            hex(out, bytes);
            out.push('"');
        }
        AttributeValue::Array(_) | AttributeValue::KeyValues(_) if depth >= NESTING_MAX => quoted(out, TOO_DEEP),
        AttributeValue::Array(values) => list(out, ['[', ']'], values, |out, value| plain_json(out, value, depth + 1)),
        AttributeValue::KeyValues(pairs) => list(out, ['{', '}'], pairs, |out, pair| {
            quoted(out, &pair.key);
            out.push(':');
            plain_json(out, &pair.value, depth + 1);
        }),
    }
}

fn pairs_json(out: &mut String, pairs: &[Attribute], depth: u32) {
    list(out, ['[', ']'], pairs, |out, pair| {
        out.push_str("{\"key\":");
        quoted(out, &pair.key);
        out.push_str(",\"value\":");
        otlp_json(out, &pair.value, depth);
        out.push('}');
    });
}

/// A value as OTLP's JSON.
fn otlp_json(out: &mut String, value: &AttributeValue, depth: u32) {
    match value {
        AttributeValue::Empty => out.push_str("{}"),
        AttributeValue::Str(text) => {
            out.push_str("{\"stringValue\":");
            quoted(out, text);
            out.push('}');
        }
        AttributeValue::Bool(truth) => put(out, format_args!("{{\"boolValue\":{truth}}}")),
        AttributeValue::Int(number) => put(out, format_args!("{{\"intValue\":\"{number}\"}}")),
        AttributeValue::Double(number) => put(out, format_args!("{{\"doubleValue\":\"{}\"}}", double_text(*number))),
        AttributeValue::Bytes(bytes) => put(out, format_args!("{{\"bytesValue\":\"{}\"}}", STANDARD.encode(&**bytes))),
        AttributeValue::Array(_) | AttributeValue::KeyValues(_) if depth >= NESTING_MAX => {
            put(out, format_args!("{{\"stringValue\":\"{TOO_DEEP}\"}}"));
        }
        AttributeValue::Array(values) => {
            out.push_str("{\"arrayValue\":{\"values\":");
            list(out, ['[', ']'], values, |out, value| otlp_json(out, value, depth + 1));
            out.push_str("}}");
        }
        AttributeValue::KeyValues(pairs) => {
            out.push_str("{\"kvlistValue\":{\"values\":");
            pairs_json(out, pairs, depth + 1);
            out.push_str("}}");
        }
    }
}

/// The shortest text that reads back as the same number, with proto3's words for the rest.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        "NaN".into()
    } else if number.is_infinite() {
        if number > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        format!("{number:?}")
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::RecordBatch;
    use proptest::prelude::*;

    use super::*;
    use crate::segment::reread;
    use crate::testing;

    fn round_trip(rows: &[Attributes]) -> Rows<Vec<Attributes>> {
        let (maps, typed) = columns(rows.iter());
        let table = &crate::tables::span_links::TABLE;
        let schema = table.schema().project(&[5, 6]).unwrap();
        let batch = reread(table, &RecordBatch::try_new(Arc::new(schema), vec![maps, typed]).unwrap());
        let (maps, typed, mut texts) = (batch.column(0).as_map(), batch.column(1).as_string_view(), KeptTexts::of_reader());
        (0..rows.len()).map(|row| attributes_at(&Budget::of_file(0), &mut texts, maps, typed, row)).collect()
    }

    fn check(value: AttributeValue, shown: &str, json: &str) {
        assert_eq!(text(&mut String::new(), &value), shown);
        let mut found = String::new();
        otlp_json(&mut found, &value, 1);
        assert_eq!(found, json);
    }

    #[test]
    fn values_look_as_documented() {
        use AttributeValue::*;
        let pair = |key: &str, value| Attribute { key: key.into(), value };
        check(Str("a \"b\"".into()), "a \"b\"", r#"{"stringValue":"a \"b\""}"#);
        check(Int(3), "3", r#"{"intValue":"3"}"#);
        check(Double(0.5), "0.5", r#"{"doubleValue":"0.5"}"#);
        check(Double(f64::NEG_INFINITY), "-inf", r#"{"doubleValue":"-Infinity"}"#);
        check(Bool(true), "true", r#"{"boolValue":true}"#);
        check(Bytes(vec![0xc0, 0xff, 0xee].into()), "c0ffee", r#"{"bytesValue":"wP/u"}"#);
        check(Empty, "", "{}");
        check(
            Array(vec![Str("a".into()), Int(3), Empty].into()),
            r#"["a",3,null]"#,
            r#"{"arrayValue":{"values":[{"stringValue":"a"},{"intValue":"3"},{}]}}"#,
        );
        check(
            KeyValues(vec![pair("a", Int(3))].into()),
            r#"{"a":3}"#,
            r#"{"kvlistValue":{"values":[{"key":"a","value":{"intValue":"3"}}]}}"#,
        );
    }

    #[test]
    fn texts_need_no_json() {
        let mut attributes = Attributes::default();
        attributes.push("http.route", AttributeValue::Str("/cart".into()));
        let (_, typed) = columns([&attributes].into_iter());
        assert_eq!(typed.null_count(), 1);
    }

    /// Lists and pairs inside each other; the innermost value has this depth.
    fn nested(depth: u32, pairs: bool) -> Attributes {
        let mut value = AttributeValue::Int(1);
        for _ in 1..depth {
            value = match pairs {
                true => AttributeValue::KeyValues(vec![Attribute { key: "k".into(), value }].into()),
                false => AttributeValue::Array(vec![value].into()),
            };
        }
        Attributes(vec![Attribute { key: "deep".into(), value }])
    }

    #[test]
    fn the_deepest_value_a_decoder_lets_in_reads_back_and_a_deeper_one_is_cut() {
        for pairs in [true, false] {
            let deep = [nested(NESTING_MAX, pairs)];
            assert_eq!(round_trip(&deep).unwrap(), deep);
            let deeper = round_trip(&[nested(NESTING_MAX + 1, pairs)]).unwrap();
            assert!(format!("{deeper:?}").contains(TOO_DEEP));
        }
    }

    proptest! {
        #[test]
        fn attributes_read_back_equal(rows in prop::collection::vec(testing::attributes(), 0..6)) {
            prop_assert_eq!(round_trip(&rows).unwrap(), rows);
        }
    }
}
