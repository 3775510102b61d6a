//! The classes of a chunk: which fields events and constants have, and in what order.
//!
//! ```text
//! metadata   texts [ "root", "metadata", "class", "id", "name", … ]     elements refer to them by number
//! element    "class" { id: "101", name: "jdk.ExecutionSample" }, 4 children
//! element      "field" { name: "stackTrace", class: "26", constantPool: "true" }, 0 children
//! ```

use std::collections::HashMap;

use longpole_model::Text;

use super::super::named_stacks::NO_MEMORY;
use super::super::parts::Budget;
use super::cursor::{Cursor, Fault, JfrText, number};
use crate::limits::{JFR_CLASS_FIELDS_MAX, JFR_NESTING_MAX};

/// Memory of a text of the metadata without its characters, and of an element: a table that grows is there twice for a moment.
const METADATA_BYTES: usize = 128;

/// What the bytes of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Byte,
    Integer,
    Float,
    Double,
    Text,
    /// The number of a constant of this class.
    Constant(i64),
    /// The fields of this class.
    Inline(i64),
}

#[derive(Debug)]
pub(super) struct ClassField {
    pub(super) name: Text,
    pub(super) kind: FieldKind,
    /// Whether there is a number of them, and then they.
    pub(super) is_list: bool,
}

#[derive(Debug, Default)]
pub(super) struct Class {
    pub(super) name: Text,
    pub(super) fields: Vec<ClassField>,
}

/// A value that is neither a list nor made of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaf<'a> {
    Integer(i64),
    Text(JfrText<'a>),
    Constant(i64),
}

/// The classes by their numbers.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) by_id: HashMap<i64, Class>,
    /// Fields that may still be read. A class whose fields are all of classes without fields takes no bytes, and much time.
    steps_left: usize,
}

/// Attributes of an element that say something.
#[derive(Default)]
struct Attributes {
    id: Option<i64>,
    name: Text,
    class: i64,
    is_constant: bool,
    is_list: bool,
}

impl Classes {
    /// Reads the metadata event of a chunk behind its size and type. The chunk has this number of bytes.
    pub(super) fn read(mut at: Cursor<'_>, chunk_bytes: usize, budget: &mut Budget) -> Result<Classes, Fault> {
        // Time, duration, number.
        for _ in 0..3 {
            at.integer()?;
        }
        let count = at.count()?;
        let mut texts = Vec::new();
        for _ in 0..count {
            match at.text()? {
                JfrText::Here(text) if budget.has(METADATA_BYTES + text.len()) => texts.push(Text::from(&*text)),
                JfrText::Here(_) => return Err(NO_MEMORY),
                JfrText::Constant(_) => return Err("a text of the metadata that is a constant"),
            }
        }
        let mut classes = Classes { by_id: HashMap::new(), steps_left: chunk_bytes.saturating_mul(2) };
        // Elements whose children are under way, and the class that each belongs to.
        let mut open: Vec<(usize, Option<i64>)> = vec![(1, None)];
        while let Some((children_left, class)) = open.last_mut() {
            if *children_left == 0 {
                open.pop();
                continue;
            }
            *children_left -= 1;
            if !budget.has(METADATA_BYTES) {
                return Err(NO_MEMORY);
            }
            let class = *class;
            let kind = text(&texts, at.integer()?)?;
            let attributes = Attributes::read(&mut at, &texts)?;
            let children = at.count()?;
            let inside = match kind.as_str() {
                "class" => {
                    let id = attributes.id.ok_or("a class without a number")?;
                    classes.by_id.insert(id, Class { name: attributes.name, fields: Vec::new() });
                    Some(id)
                }
                "field" => {
                    if let Some(class) = class.and_then(|id| classes.by_id.get_mut(&id)) {
                        if class.fields.len() >= JFR_CLASS_FIELDS_MAX {
                            return Err("a class with more than 1,024 fields");
                        }
                        let kind = if attributes.is_constant {
                            FieldKind::Constant(attributes.class)
                        } else {
                            FieldKind::Inline(attributes.class)
                        };
                        class.fields.push(ClassField { name: attributes.name, kind, is_list: attributes.is_list });
                    }
                    None
                }
                _ => class,
            };
            open.push((children, inside));
        }
        classes.know_primitives();
        Ok(classes)
    }

    /// Fields of primitive classes have no fields of their own.
    fn know_primitives(&mut self) {
        let primitive = |class: &Class| match class.name.as_str() {
            "boolean" | "byte" => Some(FieldKind::Byte),
            "char" | "short" | "int" | "long" => Some(FieldKind::Integer),
            "float" => Some(FieldKind::Float),
            "double" => Some(FieldKind::Double),
            "java.lang.String" => Some(FieldKind::Text),
            _ => None,
        };
        let known: HashMap<i64, FieldKind> = self.by_id.iter().filter_map(|(id, class)| Some((*id, primitive(class)?))).collect();
        for field in self.by_id.values_mut().flat_map(|class| &mut class.fields) {
            if let FieldKind::Inline(class) = field.kind
                && let Some(kind) = known.get(&class)
            {
                field.kind = *kind;
            }
        }
    }

    /// The number of the class of this name.
    pub(super) fn id_of(&self, name: &str) -> Option<i64> {
        self.by_id.iter().find(|(_, class)| class.name.as_str() == name).map(|(id, _)| *id)
    }

    /// Reads the fields of a class. `take` gets each value with the name of its field, and `None` where an element of a list begins.
    pub(super) fn values<'a>(
        &mut self,
        class: i64,
        at: &mut Cursor<'a>,
        take: &mut dyn FnMut(&str, Option<Leaf<'a>>),
    ) -> Result<(), Fault> {
        let Classes { by_id, steps_left } = self;
        values(by_id, steps_left, class, at, take, 0)
    }
}

/// Classes nest a few levels, and the limit keeps the call stack small.
fn values<'a>(
    classes: &HashMap<i64, Class>,
    steps_left: &mut usize,
    class: i64,
    at: &mut Cursor<'a>,
    take: &mut dyn FnMut(&str, Option<Leaf<'a>>),
    depth: u32,
) -> Result<(), Fault> {
    if depth > JFR_NESTING_MAX {
        return Err("classes nested deeper than 8");
    }
    let class = classes.get(&class).ok_or("a class that the metadata does not have")?;
    if class.name.as_str() == "java.lang.String" {
        take("string", Some(Leaf::Text(at.text()?)));
        return Ok(());
    }
    for field in &class.fields {
        let count = if field.is_list { at.count()? } else { 1 };
        for _ in 0..count {
            *steps_left = steps_left.checked_sub(1).ok_or("more fields than bytes")?;
            if field.is_list {
                take(&field.name, None);
            }
            match field.kind {
                FieldKind::Byte => take(&field.name, Some(Leaf::Integer(i64::from(at.byte()?)))),
                FieldKind::Integer => take(&field.name, Some(Leaf::Integer(at.integer()?))),
                FieldKind::Float => _ = at.take(4)?,
                FieldKind::Double => _ = at.take(8)?,
                FieldKind::Text => take(&field.name, Some(Leaf::Text(at.text()?))),
                FieldKind::Constant(_) => take(&field.name, Some(Leaf::Constant(at.integer()?))),
                FieldKind::Inline(inner) => values(classes, steps_left, inner, at, take, depth + 1)?,
            }
        }
    }
    Ok(())
}

impl Attributes {
    fn read(at: &mut Cursor<'_>, texts: &[Text]) -> Result<Self, Fault> {
        let mut attributes = Attributes::default();
        for _ in 0..at.count()? {
            let key = text(texts, at.integer()?)?;
            let value = text(texts, at.integer()?)?;
            match key.as_str() {
                "id" => attributes.id = number(&value),
                "name" => attributes.name = value,
                "class" => attributes.class = number(&value).unwrap_or(0),
                "constantPool" => attributes.is_constant = value.as_str() == "true",
                "dimension" => attributes.is_list = value.as_str() != "0",
                _ => {}
            }
        }
        Ok(attributes)
    }
}

fn text(texts: &[Text], index: i64) -> Result<Text, Fault> {
    let text = usize::try_from(index).ok().and_then(|index| texts.get(index));
    text.cloned().ok_or("a text that the metadata does not have")
}
