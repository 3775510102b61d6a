//! Reading JSON texts whose shape is known, for every format that is JSON.
//!
//! Like serde's derived readers, but forgiving where people's exporters differ: `null` reads as "not set", integers may be
//! texts, unknown names are ignored, a name that stands twice is taken as it stands last. And with limits: values of one
//! span are counted, and nest only so deep.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use crate::error::DecodeError;
use crate::limits::{JSON_BYTES_A_VALUE, JSON_VALUES_MIN, Limits};

/// Reads a whole text as this message.
pub(crate) fn parse<'de, T: Json<'de>>(bytes: &'de [u8], limits: &Limits) -> Result<T, DecodeError> {
    read_all(bytes, limits, u64::MAX).map(|(message, _)| message)
}

/// What of a text is in no message that was read from it. Whoever keeps the text as it came keeps that, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnreadMembers {
    /// There are members whose name nobody knows.
    pub unknown: bool,
    /// Something was read and left out: of a name that stands twice all but the last, elements that say nothing, names of no enum.
    pub left_out: bool,
}

/// [`parse`] of a text that holds no more values than its bytes allow: a request, above all. And what of the text nobody reads.
pub(crate) fn parse_request<'de, T: Json<'de>>(bytes: &'de [u8], limits: &Limits) -> Result<(T, UnreadMembers), DecodeError> {
    read_all(bytes, limits, JSON_VALUES_MIN + bytes.len() as u64 / JSON_BYTES_A_VALUE)
}

fn read_all<'de, T: Json<'de>>(bytes: &'de [u8], limits: &Limits, values_max: u64) -> Result<(T, UnreadMembers), DecodeError> {
    let values = Cell::new(0);
    let values_left = Cell::new(values_max);
    let unread = Cell::new(UnreadMembers::default());
    // Once for the whole: for each of its texts anew it took a sixth of the time.
    let text = std::str::from_utf8(bytes).map_err(|error| no_text(&bytes[..error.valid_up_to()]))?;
    let mut text = serde_json::Deserializer::from_str(text);
    let context = Context { limits, values: &values, values_left: &values_left, unread: &unread, depth: 0 };
    T::read(&mut text, context).and_then(|message| text.end().map(|()| (message, unread.get()))).map_err(refused)
}

/// The error of bytes that are no text behind these.
fn no_text(before: &[u8]) -> DecodeError {
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    DecodeError::Json { problem: "bytes that are not UTF-8".to_owned(), line, column }
}

fn refused(error: serde_json::Error) -> DecodeError {
    let (line, column) = (error.line(), error.column());
    let mut problem = error.to_string();
    // serde_json ends its message with the position, which has fields of its own here.
    if let Some(position) = problem.rfind(" at line ") {
        problem.truncate(position);
    }
    DecodeError::Json { problem: without_values(problem), line, column }
}

/// No credential is as short as this.
const QUOTED_BYTES_MAX: usize = 4;

/// The words of serde without the text that it quotes: that may be a credential, and as long as the document.
fn without_values(mut problem: String) -> String {
    for (before, after) in [(" string \"", "\", expected "), ("unknown variant `", "`, expected "), ("unknown field `", "`, expected ")] {
        if let Some((start, end)) = problem.find(before).zip(problem.rfind(after)) {
            let start = start + before.len();
            if start + QUOTED_BYTES_MAX < end {
                problem.replace_range(start..end, "…");
            }
        }
    }
    problem
}

/// What a reader of a part of the request has to know of the rest of it.
#[derive(Clone, Copy)]
pub(crate) struct Context<'c> {
    limits: &'c Limits,
    /// Values of the span, resource or scope under way.
    values: &'c Cell<u32>,
    /// Values that the whole text may still have.
    values_left: &'c Cell<u64>,
    /// What was passed over.
    unread: &'c Cell<UnreadMembers>,
    /// Attribute values around this one.
    depth: u32,
}

impl Context<'_> {
    /// The limits of the text.
    pub(crate) fn limits(&self) -> &Limits {
        self.limits
    }

    /// Called where a member is passed over, because nobody knows its name.
    pub(crate) fn passed_over(&self) {
        self.unread.set(UnreadMembers { unknown: true, ..self.unread.get() });
    }

    /// Called where something that was read stands in no message.
    pub(crate) fn left_out(&self) {
        self.unread.set(UnreadMembers { left_out: true, ..self.unread.get() });
    }

    /// Called at the start of each message.
    pub(crate) fn enter<E: serde::de::Error>(&self, role: Role) -> Result<(), E> {
        match role {
            Role::Container => Ok(()),
            Role::Owner => {
                self.values.set(0);
                Ok(())
            }
            Role::Value => self.count_value(),
        }
    }

    pub(crate) fn count_value<E: serde::de::Error>(&self) -> Result<(), E> {
        let values = self.values.get() + 1;
        self.values.set(values);
        if values > self.limits.values_max {
            return Err(E::custom(format_args!("more than {} values in one span, resource or scope", self.limits.values_max)));
        }
        let Some(left) = self.values_left.get().checked_sub(1) else {
            return Err(E::custom(format_args!("more values than one in {JSON_BYTES_A_VALUE} bytes: nearly all of them say nothing")));
        };
        self.values_left.set(left);
        Ok(())
    }

    pub(crate) fn nested<E: serde::de::Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        if depth > self.limits.nesting_max {
            return Err(E::custom(format_args!("values nested deeper than {}", self.limits.nesting_max)));
        }
        Ok(Context { depth, ..self })
    }
}

/// What the limits have to know of a message.
pub(crate) enum Role {
    /// Holds others.
    Container,
    /// Starts a new count of values.
    Owner,
    /// Counts as a value.
    Value,
}

/// Something that can be read out of a JSON text. `null` reads as the default, which is how proto3 spells "not set".
pub(crate) trait Json<'de>: Default {
    /// What a person should have written, for "expected …".
    const EXPECTED: &'static str;

    /// Reads it.
    fn read<D: Deserializer<'de>>(input: D, context: Context<'_>) -> Result<Self, D::Error> {
        input.deserialize_any(Reader { context, read: PhantomData })
    }

    /// From a text.
    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Str(&text), &Self::EXPECTED))
    }

    /// Whether a value says all that this text does.
    fn keeps(_text: &str) -> bool {
        true
    }

    /// From a number with a sign.
    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Err(E::custom(format_args!("invalid type: integer `{number}`, expected {}", Self::EXPECTED)))
    }

    /// From a number that is not whole, or too large for an integer.
    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Float(number), &Self::EXPECTED))
    }

    /// From `true` or `false`.
    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        Err(E::invalid_type(serde::de::Unexpected::Bool(truth), &Self::EXPECTED))
    }

    /// From a list.
    fn list<A: SeqAccess<'de>>(_list: A, _context: Context<'_>) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(serde::de::Unexpected::Seq, &Self::EXPECTED))
    }

    /// From an object.
    fn object<A: MapAccess<'de>>(_object: A, _context: Context<'_>) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(serde::de::Unexpected::Map, &Self::EXPECTED))
    }
}

/// Hands what serde found to the matching method of [`Json`].
struct Reader<'c, T> {
    context: Context<'c>,
    read: PhantomData<T>,
}

impl<'de, T: Json<'de>> Visitor<'de> for Reader<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E: serde::de::Error>(self, truth: bool) -> Result<T, E> {
        T::truth(truth)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<T, E> {
        T::integer(i128::from(number))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<T, E> {
        T::integer(i128::from(number))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<T, E> {
        T::double(number)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<T, E> {
        if !T::keeps(text) {
            self.context.left_out();
        }
        T::text(Cow::Borrowed(text))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        if !T::keeps(text) {
            self.context.left_out();
        }
        T::text(Cow::Owned(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list, self.context)
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<T, A::Error> {
        T::object(object, self.context)
    }
}

impl<'de, T: Json<'de>> DeserializeSeed<'de> for Reader<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<T, D::Error> {
        T::read(input, self.context)
    }
}

/// The next value of an object.
pub(crate) fn member<'de, T: Json<'de>, A: MapAccess<'de>>(object: &mut A, context: Context<'_>) -> Result<T, A::Error> {
    object.next_value_seed(Reader { context, read: PhantomData })
}

/// The next element of a list.
pub(crate) fn element<'de, T: Json<'de>, A: SeqAccess<'de>>(list: &mut A, context: Context<'_>) -> Result<Option<T>, A::Error> {
    list.next_element_seed(Reader { context, read: PhantomData })
}

/// The next name of an object.
pub(crate) fn name<'de, A: MapAccess<'de>>(object: &mut A, context: Context<'_>) -> Result<Option<Cow<'de, str>>, A::Error> {
    object.next_key_seed(Reader { context, read: PhantomData })
}

impl<'de> Json<'de> for Cow<'de, str> {
    const EXPECTED: &'static str = "a string";

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        Ok(text)
    }
}

impl Json<'_> for bool {
    const EXPECTED: &'static str = "true or false";

    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        Ok(truth)
    }
}

impl<'de> Json<'de> for f64 {
    const EXPECTED: &'static str = "a number";

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Ok(number as f64)
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Ok(number)
    }

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        match &*text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            // Rust would also take "inf" and "nan", which proto3 does not.
            other if other.ends_with(|c: char| c.is_ascii_digit()) => {
                other.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(other), &Self::EXPECTED))
            }
            other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &Self::EXPECTED)),
        }
    }
}

/// A double is a whole number where it has no fraction and every whole number of its size is one.
fn whole(number: f64) -> Option<i128> {
    (number.fract() == 0.0 && number.abs() <= 2f64.powi(64)).then_some(truncated(number))
}

/// The whole part of a number; the nearest `i128` where it is out of range, 0 where it is none.
#[expect(clippy::cast_possible_truncation, reason = "what is behind the point is cut, and the cast saturates")]
fn truncated(number: f64) -> i128 {
    number as i128
}

macro_rules! integer {
    ($type:ty, $expected:literal) => {
        impl<'de> Json<'de> for $type {
            const EXPECTED: &'static str = $expected;

            fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
                Self::try_from(number).map_err(|_| E::custom(format_args!("{number} is out of range for {}", Self::EXPECTED)))
            }

            fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
                match whole(number) {
                    Some(number) => Self::integer(number),
                    None => Err(E::invalid_type(serde::de::Unexpected::Float(number), &Self::EXPECTED)),
                }
            }

            fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
                // Nearly all are short, and 128 bits are slow.
                if let Ok(number) = text.parse::<i64>() {
                    return Self::integer(i128::from(number));
                }
                match text.parse::<i128>() {
                    Ok(number) => Self::integer(number),
                    Err(_) => match text.parse::<f64>().ok().and_then(whole) {
                        Some(number) => Self::integer(number),
                        None => Err(E::invalid_value(serde::de::Unexpected::Str(&text), &Self::EXPECTED)),
                    },
                }
            }
        }
    };
}

integer!(u64, "an unsigned 64-bit integer");
integer!(i64, "a 64-bit integer");
integer!(u32, "an unsigned 32-bit integer");

/// A field where `null` differs from the default: the members of a oneof.
impl<'de, T: Json<'de>> Json<'de> for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        T::text(text).map(Some)
    }

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        T::integer(number).map(Some)
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        T::double(number).map(Some)
    }

    fn truth<E: serde::de::Error>(truth: bool) -> Result<Self, E> {
        T::truth(truth).map(Some)
    }

    fn object<A: MapAccess<'de>>(object: A, context: Context<'_>) -> Result<Self, A::Error> {
        T::object(object, context).map(Some)
    }
}

/// A repeated field, and how many of its elements are not worth keeping.
pub(crate) struct List<T> {
    pub(crate) kept: Vec<T>,
    pub(crate) left_out: u64,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        List { kept: Vec::new(), left_out: 0 }
    }
}

/// What may stand in a list. A message is far larger than the `{}` that it may be written as; that a request of 64 MiB
/// does not become ten gigabytes, those that say nothing are left out at once.
pub(crate) trait Element {
    fn is_worth_keeping(&self) -> bool {
        true
    }
}

impl<'de, T: Json<'de> + Element> Json<'de> for List<T> {
    const EXPECTED: &'static str = "a list";

    fn list<A: SeqAccess<'de>>(mut list: A, context: Context<'_>) -> Result<Self, A::Error> {
        let mut elements = List::default();
        while let Some(element) = element::<T, A>(&mut list, context)? {
            if element.is_worth_keeping() {
                elements.kept.push(element);
            } else {
                elements.left_out += 1;
                context.left_out();
            }
        }
        Ok(elements)
    }
}

impl Element for Cow<'_, str> {}
impl Element for u32 {}
impl Element for f64 {}
impl<T> Element for List<T> {}

/// Declares a message: what it is to the limits, and its fields with their types and two names.
macro_rules! message {
    ($type:ident<$life:lifetime>, $role:ident, { $($field:ident: $value:ty = $camel:literal $(| $snake:literal)?),+ $(,)? }) => {
        #[derive(Default)]
        pub(crate) struct $type<$life> {
            $(pub(crate) $field: $value),+
        }

        impl<$life> $crate::json::Json<$life> for $type<$life> {
            const EXPECTED: &'static str = "an object";

            fn object<A: serde::de::MapAccess<$life>>(mut object: A, context: $crate::json::Context<'_>) -> Result<Self, A::Error> {
                context.enter($crate::json::Role::$role)?;
                let mut message = Self::default();
                $(let mut $field = false;)+
                while let Some(name) = $crate::json::name(&mut object, context)? {
                    match &*name {
                        $($camel $(| $snake)? => {
                            if std::mem::replace(&mut $field, true) {
                                context.left_out();
                            }
                            message.$field = $crate::json::member(&mut object, context)?;
                        })+
                        _ => {
                            object.next_value::<serde::de::IgnoredAny>()?;
                            context.passed_over();
                        }
                    }
                }
                Ok(message)
            }
        }
    };
}

pub(crate) use message;

/// Microseconds; a fraction, which some exporters send, is cut.
#[derive(Default)]
pub(crate) struct Micros(pub(crate) i128);

impl<'de> Json<'de> for Micros {
    const EXPECTED: &'static str = "microseconds";

    fn integer<E: serde::de::Error>(number: i128) -> Result<Self, E> {
        Ok(Micros(number))
    }

    fn double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        Ok(Micros(truncated(number)))
    }

    fn text<E: serde::de::Error>(text: Cow<'de, str>) -> Result<Self, E> {
        text.parse().map(Micros).map_err(|_| E::invalid_value(serde::de::Unexpected::Str(&text), &Self::EXPECTED))
    }
}
