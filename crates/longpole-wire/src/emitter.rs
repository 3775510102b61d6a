//! How much a resource and a scope may say.
//!
//! A request says them once; every span is stored, shown and exported with its own copy. So 10,000 attributes beside 10,000
//! spans, 200 KB of a request, would be a hundred million values. What goes beyond the limits is left out, and counted.

use longpole_model::attribute::{AttributeValue, Attributes};
use longpole_model::resource::{Resource, Scope};

use crate::limits::{EMITTER_ATTRIBUTES_MAX, EMITTER_BYTES_MAX, EMITTER_VALUE_BYTES_MAX};

/// What the loss says.
pub(crate) const CUT: &str = "attributes of resources and scopes cut or left out: more than 256, or more than 64 KiB of them";

/// A longer word than this is cut inside: a class path, not a credential.
const WORD_BYTES_MAX: usize = 512;

/// Keys that say whose spans these are. Their attributes stay, wherever they stand.
const KEPT: [&str; 3] = ["service.name", "process.pid", "longpole.run.id"];

/// Keeps what a resource may say; returns how many of its attributes were cut or left out.
pub(crate) fn fit_resource(resource: &mut Resource) -> u64 {
    fit(&mut resource.attributes)
}

/// The same of a scope, whose name and version count as attributes where they are too long.
pub(crate) fn fit_scope(scope: &mut Scope) -> u64 {
    let cut = u64::from(cut(&mut scope.name)) + u64::from(cut(&mut scope.version));
    cut.saturating_add(fit(&mut scope.attributes))
}

/// Whether this resource and this scope are so short that nothing of them is cut or left out.
pub fn fits(resource: &Resource, scope: &Scope) -> bool {
    let is_short = |text: &str| text.len() <= EMITTER_VALUE_BYTES_MAX;
    are_few(&resource.attributes) && are_few(&scope.attributes) && is_short(&scope.name) && is_short(&scope.version)
}

fn are_few(attributes: &Attributes) -> bool {
    attributes.0.len() <= EMITTER_ATTRIBUTES_MAX && size_of_all(attributes) <= EMITTER_VALUE_BYTES_MAX
}

fn fit(attributes: &mut Attributes) -> u64 {
    if are_few(attributes) {
        return 0;
    }
    // The last of a key is the one that counts.
    let kept = KEPT.map(|key| {
        attributes.0.iter().rposition(|it| it.key == key && matches!(it.value, AttributeValue::Str(_) | AttributeValue::Int(_)))
    });
    let (mut places, mut bytes) = (EMITTER_ATTRIBUTES_MAX, EMITTER_BYTES_MAX);
    for attribute in kept.iter().flatten().filter_map(|index| attributes.0.get(*index)) {
        places -= 1;
        bytes -= attribute.key.len() + size(&attribute.value).min(EMITTER_VALUE_BYTES_MAX);
    }
    let (mut index, mut lost) = (0, 0);
    attributes.0.retain_mut(|attribute| {
        let is_kept = kept.contains(&Some(index));
        index += 1;
        let was_cut = cut_value(&mut attribute.value);
        let size = attribute.key.len() + size(&attribute.value);
        let has_room = is_kept || (places > 0 && size <= bytes);
        lost += u64::from(was_cut || !has_room);
        if has_room && !is_kept {
            places -= 1;
            bytes -= size;
        }
        has_room
    });
    lost
}

fn cut_value(value: &mut AttributeValue) -> bool {
    match value {
        AttributeValue::Str(text) if text.len() > EMITTER_VALUE_BYTES_MAX => {
            let mut shorter = text.as_str().to_owned();
            cut(&mut shorter);
            *text = shorter.into();
            true
        }
        _ => false,
    }
}

fn size_of_all(attributes: &Attributes) -> usize {
    attributes.iter().map(|attribute| attribute.key.len() + size(&attribute.value)).sum()
}

/// Bytes that a value takes, about. Recursion ends: values nest no deeper than the limit of the decoder that made them.
fn size(value: &AttributeValue) -> usize {
    8 + match value {
        AttributeValue::Str(text) => text.len(),
        AttributeValue::Bytes(bytes) => bytes.len(),
        AttributeValue::Array(values) => values.iter().map(size).sum(),
        AttributeValue::KeyValues(pairs) => pairs.iter().map(|pair| pair.key.len() + size(&pair.value)).sum(),
        _ => 0,
    }
}

/// Cuts a text that is too long; says whether it was.
fn cut(text: &mut String) -> bool {
    if text.len() <= EMITTER_VALUE_BYTES_MAX {
        return false;
    }
    text.truncate(text.floor_char_boundary(EMITTER_VALUE_BYTES_MAX - '…'.len_utf8()));
    // Half a credential is recognised by nobody: a word at the end goes whole.
    let tail = text.floor_char_boundary(text.len() - WORD_BYTES_MAX);
    if let Some(space) = text[tail..].rfind(char::is_whitespace) {
        text.truncate(tail + space);
    }
    text.push('…');
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(len: usize) -> AttributeValue {
        AttributeValue::Str("é".repeat(len / 2).into())
    }

    fn keys(resource: &Resource) -> Vec<&str> {
        resource.attributes.iter().map(|attribute| &*attribute.key).collect()
    }

    #[test]
    fn an_ordinary_resource_is_as_it_came() {
        let mut resource = Resource::default();
        (0..EMITTER_ATTRIBUTES_MAX).for_each(|number| resource.attributes.push(format!("k{number}"), text(200)));
        let before = resource.clone();
        assert_eq!((fit_resource(&mut resource), resource), (0, before));
    }

    #[test]
    fn whose_the_spans_are_stays_behind_any_number_of_attributes() {
        let mut resource = Resource::default();
        (0..10_000).for_each(|number| resource.attributes.push(format!("k{number}"), AttributeValue::Int(number)));
        resource.attributes.push("service.name", AttributeValue::Str("shop".into()));
        resource.attributes.push("process.pid", AttributeValue::Int(7));
        assert_eq!(fit_resource(&mut resource), 10_002 - EMITTER_ATTRIBUTES_MAX as u64);
        assert_eq!((resource.service_name(), resource.process_pid()), ("shop", Some(7)));
        assert_eq!(keys(&resource)[..2], ["k0", "k1"], "the first stay");
        assert_eq!(resource.attributes.0.len(), EMITTER_ATTRIBUTES_MAX);
        assert_eq!(fit_resource(&mut resource), 0, "what fits is not cut again");
    }

    #[test]
    fn long_values_are_cut_between_characters_or_left_out() {
        let mut resource = Resource::default();
        resource.attributes.push("service.name", text(4 << 20));
        resource.attributes.push("list", AttributeValue::Array(vec![AttributeValue::Empty; 1 << 20].into()));
        (0..5).for_each(|number| resource.attributes.push(format!("k{number}"), text(EMITTER_VALUE_BYTES_MAX)));
        resource.attributes.push("small", AttributeValue::Bool(true));
        assert_eq!(fit_resource(&mut resource), 5, "one was cut, four had no room");
        assert_eq!(keys(&resource), ["service.name", "k0", "k1", "small"]);
        let name = resource.service_name();
        assert!(
            name.ends_with("é…") && name.len() <= EMITTER_VALUE_BYTES_MAX && name.len() > EMITTER_VALUE_BYTES_MAX - 4,
            "{}",
            name.len()
        );
        assert!(size_of_all(&resource.attributes) <= EMITTER_BYTES_MAX);
        assert_eq!(fit_resource(&mut resource), 0);
    }

    #[test]
    fn a_word_at_the_cut_goes_whole() {
        let mut resource = Resource::default();
        let line = format!("{} --token {}", "x".repeat(EMITTER_VALUE_BYTES_MAX - 20), "s".repeat(40));
        resource.attributes.push("process.command_line", AttributeValue::Str(line.into()));
        assert_eq!(fit_resource(&mut resource), 1);
        let AttributeValue::Str(kept) = &resource.attributes.0[0].value else { panic!("{resource:?}") };
        assert!(kept.as_str().ends_with(" --token…"), "{}", &kept.as_str()[EMITTER_VALUE_BYTES_MAX - 40..]);
    }

    #[test]
    fn names_of_scopes_are_cut_as_well() {
        let mut scope = Scope { name: "n".repeat(1 << 20), version: "1.0".to_owned(), attributes: Attributes::default() };
        scope.attributes.push("version.text", text(1 << 20));
        assert_eq!(fit_scope(&mut scope), 2);
        assert_eq!((scope.name.len(), &*scope.version), (EMITTER_VALUE_BYTES_MAX, "1.0"));
    }
}
