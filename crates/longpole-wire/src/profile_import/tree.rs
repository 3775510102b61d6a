//! The trees in which Pyroscope's SDKs send stacks, the root first; numbers are LEB128.
//!
//! ```text
//! trie   00 00 01                       root: no bytes, value 0, 1 child
//!           05 "main;"     00 02          path "main;": value 0, 2 children. What is cut off is where names part, not where they end
//!              04 "work"   0c 00            path "main;work": 12 samples
//!              04 "wait"   03 00            path "main;wait": 3 samples
//!
//! tree   00 00 01                       the same, and each node is a whole function
//!           04 "main"      00 02
//!              04 "work"   0c 00
//!              04 "wait"   03 00
//! ```

use longpole_model::LocationId;

use super::named_stacks::NamedStacks;
use super::{Profile, ValueType};
use crate::error::FileError;
use crate::leb128;

/// What the bytes of a node are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeKind {
    /// A piece of a path, whose functions are parted by `;`.
    Trie,
    /// A function.
    Tree,
}

/// A node whose children are under way.
struct Open {
    children_left: u64,
    /// Length of the path with this node.
    path: usize,
}

/// Decodes a tree.
///
/// # Errors
///
/// It breaks off, goes on behind its end, or takes too much.
pub(crate) fn decode(bytes: &[u8], kind: TreeKind, memory_bytes_max: u64) -> Result<Profile, FileError> {
    let format = if kind == TreeKind::Trie { "trie" } else { "tree" };
    let types = vec![ValueType { name: "samples".to_owned(), unit: "count".to_owned() }];
    let mut stacks = NamedStacks::new(Profile { types, ..Profile::default() }, bytes.len(), memory_bytes_max);
    let (mut path, mut frames): (Vec<u8>, Vec<LocationId>) = (Vec::new(), Vec::new());
    let mut rest = bytes;
    // As if there were one node around the root.
    let mut open = vec![Open { children_left: 1, path: 0 }];
    while let Some(around) = open.last_mut() {
        if around.children_left == 0 {
            open.pop();
            continue;
        }
        around.children_left -= 1;
        let above = around.path;
        let broken = |problem| FileError::Broken { problem, format, offset: (bytes.len() - rest.len()) as u64 };
        let node = Node::read(rest).map_err(broken)?;
        let added = match kind {
            TreeKind::Trie => {
                path.truncate(above);
                path.extend_from_slice(node.name);
                let names = path.rsplit(|byte| *byte == b';').filter(|name| !name.is_empty());
                // Only where something ends here: a path is walked once for each of its samples.
                if node.value > 0 { stack_of_names(&mut stacks, names, path.len(), node.value) } else { Ok(()) }
            }
            TreeKind::Tree => {
                frames.truncate(above);
                add_frame(&mut stacks, &mut frames, node)
            }
        };
        added.map_err(broken)?;
        rest = node.rest;
        open.push(Open { children_left: node.children, path: if kind == TreeKind::Trie { path.len() } else { frames.len() } });
    }
    let broken = |problem| FileError::Broken { problem, format, offset: (bytes.len() - rest.len()) as u64 };
    match rest {
        [] => stacks.finish().map_err(broken),
        _ => Err(broken("bytes behind the last node")),
    }
}

fn stack_of_names<'p>(
    stacks: &mut NamedStacks,
    leaf_first: impl Iterator<Item = &'p [u8]>,
    path_bytes: usize,
    value: i64,
) -> Result<(), &'static str> {
    let stack: Result<Vec<LocationId>, &str> =
        leaf_first.take(crate::limits::STACK_FRAMES_MAX + 1).map(|name| stacks.location(name)).collect();
    stacks.sample(stack?, path_bytes, vec![value])
}

fn add_frame(stacks: &mut NamedStacks, frames: &mut Vec<LocationId>, node: Node<'_>) -> Result<(), &'static str> {
    if !node.name.is_empty() {
        frames.push(stacks.location(node.name)?);
    }
    match node.value {
        0 => Ok(()),
        value => stacks.sample(frames.iter().rev().copied(), size_of_val(&frames[..]), vec![value]),
    }
}

/// A node without its children.
#[derive(Clone, Copy)]
struct Node<'a> {
    name: &'a [u8],
    value: i64,
    children: u64,
    /// What stands behind it.
    rest: &'a [u8],
}

impl<'a> Node<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, &'static str> {
        let (length, rest) = number(bytes)?;
        let length = usize::try_from(length).map_err(|_| CUT)?;
        let (name, rest) = rest.split_at_checked(length).ok_or(CUT)?;
        let (value, rest) = number(rest)?;
        let (children, rest) = number(rest)?;
        let value = i64::try_from(value).map_err(|_| "a value of more than 63 bits")?;
        Ok(Node { name, value, children, rest })
    }
}

const CUT: &str = "the bytes end inside a node";

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    match leb128::read(bytes) {
        Ok((number, length)) => Ok((number, &bytes[length..])),
        Err(leb128::Leb128Fault::Truncated) => Err(CUT),
        Err(leb128::Leb128Fault::TooLong) => Err("an integer longer than 64 bits"),
    }
}
