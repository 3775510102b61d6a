//! Calls of many profiles, added up.
//!
//! ```text
//! main;handle;parse 30      total
//! main;handle;render 5       └ main 45, 10 of it itself
//! main 10                       └ handle 35
//!                                   ├ parse 30
//!                                   └ render 5
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use longpole_model::Text;

/// The function that stands for those that a cut tree leaves out.
pub const OTHER: &str = "other";

/// The place of the root, which stands for all of it.
const ROOT: usize = 0;

/// A function as it was called by those above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CallNode {
    parent: u32,
    name: u32,
    total: i64,
    own: i64,
}

/// A function of a tree, in the order of [`ProfileTree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeView<'a> {
    /// How many functions stand above it: 0 for the root, which is no function.
    pub depth: usize,
    /// Its name; `total` for the root.
    pub name: &'a str,
    /// How much it had with what it called.
    pub total: i64,
    /// How much it had itself.
    pub own: i64,
}

/// A function of two trees, in the order of [`ProfileTree::beside`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOfTwo {
    /// How many functions stand above it.
    pub depth: usize,
    /// Its name.
    pub name: Text,
    /// How much it had in each tree: with what it called, and itself.
    pub sides: [(i64, i64); 2],
}

/// How much a function had, wherever it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionSum {
    /// Its name.
    pub function: Text,
    /// The source file of all functions of this name; empty where none is known, or several are.
    pub file: Text,
    /// With what it called; a function that calls itself counts once.
    pub total: i64,
    /// Itself.
    pub own: i64,
}

/// The source file of the functions of one name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum SourceFile {
    #[default]
    Unknown,
    One(Text),
    Several,
}

impl SourceFile {
    fn meet(&mut self, file: &Text) {
        match self {
            SourceFile::Unknown if !file.is_empty() => *self = SourceFile::One(file.clone()),
            SourceFile::One(known) if !file.is_empty() && known != file => *self = SourceFile::Several,
            SourceFile::Unknown | SourceFile::One(_) | SourceFile::Several => {}
        }
    }

    fn text(&self) -> Text {
        match self {
            SourceFile::One(file) => file.clone(),
            SourceFile::Unknown | SourceFile::Several => Text::new(),
        }
    }
}

/// The calls.
#[derive(Debug, Clone)]
pub struct ProfileTree {
    nodes: Vec<CallNode>,
    names: Vec<Text>,
    /// The source file of each name.
    files: Vec<SourceFile>,
    name_of: HashMap<Text, u32>,
    child_of: HashMap<(u32, u32), u32>,
    name_bytes: usize,
}

impl Default for ProfileTree {
    fn default() -> Self {
        let root = CallNode { parent: 0, name: 0, total: 0, own: 0 };
        let total = Text::from("total");
        let (names, name_of) = (vec![total.clone()], HashMap::from([(total, 0)]));
        ProfileTree { nodes: vec![root], names, files: vec![SourceFile::Unknown], name_of, child_of: HashMap::new(), name_bytes: 0 }
    }
}

fn place(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl ProfileTree {
    /// Adds how much a stack had; its functions come root first, each with its source file or an empty one. Sums saturate.
    pub fn add<'a>(&mut self, functions: impl Iterator<Item = (&'a Text, &'a Text)>, value: i64) {
        let mut at = place(ROOT);
        self.nodes[ROOT].total = self.nodes[ROOT].total.saturating_add(value);
        for (function, file) in functions {
            let name = self.name(function);
            self.files[name as usize].meet(file);
            at = self.child(at, name);
            let node = &mut self.nodes[at as usize];
            node.total = node.total.saturating_add(value);
        }
        let node = &mut self.nodes[at as usize];
        node.own = node.own.saturating_add(value);
    }

    fn name(&mut self, function: &Text) -> u32 {
        if let Some(known) = self.name_of.get(function) {
            return *known;
        }
        let next = place(self.names.len());
        self.name_bytes += function.len();
        self.names.push(function.clone());
        self.files.push(SourceFile::Unknown);
        self.name_of.insert(function.clone(), next);
        next
    }

    fn child(&mut self, parent: u32, name: u32) -> u32 {
        let next = place(self.nodes.len());
        let child = *self.child_of.entry((parent, name)).or_insert(next);
        if child == next {
            self.nodes.push(CallNode { parent, name, total: 0, own: 0 });
        }
        child
    }

    /// How much all of it had.
    pub fn total(&self) -> i64 {
        self.nodes[ROOT].total
    }

    /// Functions with a place, the root not among them.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.total() == 0
    }

    /// Memory that it takes, about.
    pub fn memory_bytes(&self) -> u64 {
        let (node, name) = (size_of::<CallNode>() + 2 * size_of::<((u32, u32), u32)>(), 3 * size_of::<Text>() + size_of::<SourceFile>());
        (self.nodes.len() * node + self.names.len() * name + self.name_bytes) as u64
    }

    /// The largest functions, at most this many. What else each of them called is one function, [`OTHER`].
    #[must_use]
    pub fn cut(&self, nodes_max: usize) -> ProfileTree {
        if self.len() <= nodes_max {
            return self.clone();
        }
        let children = self.children();
        let mut cut = ProfileTree::default();
        cut.nodes[ROOT] = CallNode { parent: 0, name: 0, ..self.nodes[ROOT] };
        let other = Text::from(OTHER);
        // A parent is as large as its child at least, so it comes first; among equals, the one that was added first.
        let mut open: BinaryHeap<(i64, Reverse<u32>)> = children[ROOT].iter().map(|child| self.in_turn(*child)).collect();
        let mut place_of: HashMap<u32, u32> = HashMap::from([(place(ROOT), place(ROOT))]);
        while let Some((_, Reverse(at))) = open.pop() {
            if cut.len() >= nodes_max {
                open.push(self.in_turn(at));
                break;
            }
            let node = self.nodes[at as usize];
            let parent = place_of.get(&node.parent).copied().unwrap_or_default();
            let name = cut.name(&self.names[node.name as usize]);
            cut.files[name as usize].clone_from(&self.files[node.name as usize]);
            let new = cut.child(parent, name);
            cut.nodes[new as usize] = CallNode { parent, name, ..node };
            place_of.insert(at, new);
            open.extend(children[at as usize].iter().map(|child| self.in_turn(*child)));
        }
        for (_, Reverse(at)) in open {
            let node = self.nodes[at as usize];
            let parent = place_of.get(&node.parent).copied().unwrap_or_default();
            let name = cut.name(&other);
            let new = cut.child(parent, name);
            let rest = &mut cut.nodes[new as usize];
            (rest.total, rest.own) = (rest.total.saturating_add(node.total), rest.own.saturating_add(node.total));
        }
        cut
    }

    fn in_turn(&self, at: u32) -> (i64, Reverse<u32>) {
        (self.nodes[at as usize].total, Reverse(at))
    }

    fn children(&self) -> Vec<Vec<u32>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            children[node.parent as usize].push(place(at));
        }
        children
    }

    /// The root and every function, each before those that it called, which stand by name.
    pub fn nodes(&self) -> Vec<NodeView<'_>> {
        let view = |(at, depth): (u32, usize)| {
            let node = self.nodes[at as usize];
            NodeView { depth, name: self.name_at(at), total: node.total, own: node.own }
        };
        self.order().into_iter().map(view).collect()
    }

    /// The root and every function with its depth, each before those that it called, which stand by name.
    fn order(&self) -> Vec<(u32, usize)> {
        let mut children = self.children();
        for list in &mut children {
            list.sort_by(|a, b| self.name_at(*b).cmp(self.name_at(*a)));
        }
        let (mut out, mut open) = (Vec::with_capacity(self.nodes.len()), vec![(place(ROOT), 0)]);
        while let Some((at, depth)) = open.pop() {
            out.push((at, depth));
            open.extend(children[at as usize].iter().map(|child| (*child, depth + 1)));
        }
        out
    }

    /// The functions of both trees as one, in the order of [`nodes`](Self::nodes).
    pub fn beside(&self, other: &ProfileTree) -> Vec<NodeOfTwo> {
        let mut both = self.clone();
        let mut place_of: Vec<u32> = vec![place(ROOT)];
        // A parent stands before its children.
        for node in &other.nodes[1..] {
            let name = both.name(&other.names[node.name as usize]);
            place_of.push(both.child(place_of[node.parent as usize], name));
        }
        let mut sides = vec![[(0, 0); 2]; both.nodes.len()];
        self.nodes.iter().enumerate().for_each(|(at, node)| sides[at][0] = (node.total, node.own));
        other.nodes.iter().zip(&place_of).for_each(|(node, at)| sides[*at as usize][1] = (node.total, node.own));
        let of_two = |(at, depth): (u32, usize)| NodeOfTwo { depth, name: both.name_at(at).clone(), sides: sides[at as usize] };
        both.order().into_iter().map(of_two).collect()
    }

    fn name_at(&self, at: u32) -> &Text {
        &self.names[self.nodes[at as usize].name as usize]
    }

    /// Every function, the one that had most itself first.
    pub fn functions(&self) -> Vec<FunctionSum> {
        let mut sums: Vec<Option<FunctionSum>> = vec![None; self.names.len()];
        // How often each function stands on the way down to the current one, which is `above`.
        let mut open = vec![0_u32; self.names.len()];
        let mut above: Vec<u32> = Vec::new();
        for (at, depth) in self.order().into_iter().skip(1) {
            for left in above.drain(depth - 1..) {
                open[left as usize] -= 1;
            }
            let node = self.nodes[at as usize];
            let name = node.name as usize;
            let first = || FunctionSum { function: self.names[name].clone(), file: self.files[name].text(), total: 0, own: 0 };
            let sum = sums[name].get_or_insert_with(first);
            sum.own = sum.own.saturating_add(node.own);
            if open[name] == 0 {
                sum.total = sum.total.saturating_add(node.total);
            }
            open[name] += 1;
            above.push(node.name);
        }
        let mut sums: Vec<FunctionSum> = sums.into_iter().flatten().collect();
        sums.sort_by(|a, b| (b.own, b.total).cmp(&(a.own, a.total)).then_with(|| a.function.cmp(&b.function)));
        sums
    }

    /// Memory that an answer takes which has this many of its functions, about, with all on the way to it: names several times, and as JSON that
    /// writes each byte of them in six.
    pub fn answer_bytes(&self, nodes_max: usize) -> u64 {
        let names = (self.name_bytes as u64).saturating_mul(ANSWER_BYTES_A_NAME_BYTE);
        let nodes = (self.nodes.len().min(nodes_max.saturating_mul(2)) as u64).saturating_mul(ANSWER_BYTES_A_NODE);
        // What is cut is a copy, and finds its order by lists of children.
        names.saturating_add(nodes).saturating_add(self.memory_bytes().saturating_mul(2))
    }
}

/// See [`ProfileTree::answer_bytes`].
const ANSWER_BYTES_A_NAME_BYTE: u64 = 10;
const ANSWER_BYTES_A_NODE: u64 = 200;

#[cfg(test)]
mod tests {
    use super::super::testing::tree;
    use super::*;

    fn drawn(tree: &ProfileTree) -> Vec<String> {
        let nodes = tree.nodes();
        nodes.iter().map(|node| format!("{}{} {} {}", "  ".repeat(node.depth), node.name, node.total, node.own)).collect()
    }

    #[test]
    fn stacks_add_up_to_a_tree() {
        let tree = tree(&[("main;handle;parse", 30), ("main;handle;render", 5), ("main", 10), ("main;handle;parse", 1)]);
        assert_eq!(drawn(&tree), ["total 46 0", "  main 46 10", "    handle 36 0", "      parse 31 31", "      render 5 5"]);
        assert_eq!((tree.total(), tree.len()), (46, 4));
    }

    #[test]
    fn a_cut_tree_keeps_the_largest_and_the_sum() {
        let tree = tree(&[("main;a", 30), ("main;b", 5), ("main;c;d", 7), ("init", 1)]);
        assert_eq!(drawn(&tree.cut(2)), ["total 43 0", "  main 42 0", "    a 30 30", "    other 12 12", "  other 1 1"]);
        assert_eq!(drawn(&tree.cut(9)), drawn(&tree));
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let tree = tree(&[("main;walk;walk;walk", 3), ("main;walk", 1)]);
        let functions: Vec<(String, i64, i64)> =
            tree.functions().into_iter().map(|sum| (sum.function.as_str().to_owned(), sum.total, sum.own)).collect();
        assert_eq!(functions, [("walk".to_owned(), 4, 4), ("main".to_owned(), 4, 0)]);
    }

    #[test]
    fn a_function_has_a_file_where_all_of_its_name_have_one() {
        let mut tree = ProfileTree::default();
        let text = Text::from;
        for (function, file) in [("parse", "a.py"), ("run", "a.py"), ("run", "b.py"), ("parse", ""), ("native", "")] {
            tree.add([(&text(function), &text(file))].into_iter(), 1);
        }
        let mut files: Vec<[String; 2]> = tree.functions().iter().map(|sum| [&sum.function, &sum.file].map(ToString::to_string)).collect();
        files.sort();
        assert_eq!(files, [["native", ""], ["parse", "a.py"], ["run", ""]]);
    }

    #[test]
    fn sums_saturate() {
        let tree = tree(&[("main", i64::MAX), ("main", 5)]);
        assert_eq!(drawn(&tree), [format!("total {0} 0", i64::MAX), format!("  main {0} {0}", i64::MAX)]);
    }
}
