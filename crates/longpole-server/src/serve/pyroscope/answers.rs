//! Answers of the querier, from what was added up.

use std::borrow::Cow;
use std::collections::BTreeSet;

use longpole_analysis::profile::{Levels, ProfileTree};
use longpole_model::profile::ProfileType;
use longpole_store::live::QueryLimits;
use longpole_wire::pyroscope::Codec;
use longpole_wire::pyroscope::querier::{FlameGraph, FlameGraphDiff};

use crate::serve::query_error::QueryError;

/// Bars of a flame graph if the query sets no number, and at most.
const NODES: usize = 8_192;
const NODES_MAX: usize = 1 << 20;

/// Functions of a graph for Graphviz, which cannot draw more in any useful time.
const DOT_NODES_MAX: usize = 1_000;

/// How many bars a query wants; 0 is all that there may be.
pub(super) fn nodes_max(wanted: Option<i64>) -> usize {
    match wanted {
        None => NODES,
        Some(0) => NODES_MAX,
        Some(number) => usize::try_from(number).unwrap_or(NODES).min(NODES_MAX),
    }
}

/// A tree as levels of bars.
pub(super) fn flame_graph(tree: &ProfileTree, nodes: usize, limits: &QueryLimits) -> Result<FlameGraph, QueryError> {
    if tree.is_empty() {
        return Ok(FlameGraph::default());
    }
    limits.take(tree.answer_bytes(nodes))?;
    let levels = Levels::of(&tree.cut(nodes));
    Ok(FlameGraph { names: levels.names, levels: levels.bars, total: tree.total(), max_self: levels.own_max })
}

/// Two trees as levels of bars.
pub(super) fn flame_graph_diff(
    left: &ProfileTree,
    right: &ProfileTree,
    nodes: usize,
    limits: &QueryLimits,
) -> Result<FlameGraphDiff, QueryError> {
    limits.take(left.answer_bytes(nodes).saturating_add(right.answer_bytes(nodes)))?;
    let levels = Levels::of_two(&left.cut(nodes), &right.cut(nodes));
    let (left_ticks, right_ticks) = (left.total(), right.total());
    Ok(FlameGraphDiff {
        names: levels.names,
        levels: levels.bars,
        total: left_ticks.saturating_add(right_ticks),
        max_self: levels.own_max,
        left_ticks,
        right_ticks,
    })
}

/// Memory of pprof in the answer of a method: a copy, or JSON that writes a byte of a text in six.
pub(super) fn pprof_answer_bytes(pprof: &[u8], codec: Codec) -> u64 {
    let times = match codec {
        Codec::Protobuf => 1,
        Codec::Json => 12,
    };
    (pprof.len() as u64).saturating_mul(times)
}

/// Memory of an answer, before it is written: these bytes of texts and this number of texts and values. As JSON a byte of a text is six, and an answer
/// has twice its size while it grows.
pub(super) fn take_answer(limits: &QueryLimits, text_bytes: u64, values: usize, codec: Codec) -> Result<(), QueryError> {
    let times = match codec {
        Codec::Protobuf => 2,
        Codec::Json => 12,
    };
    Ok(limits.take(text_bytes.saturating_mul(times).saturating_add((values as u64).saturating_mul(VALUE_BYTES)))?)
}

/// Memory of a value of an answer, with what stands around it.
const VALUE_BYTES: u64 = 100;

/// The same of texts.
pub(super) fn take_texts<'a>(limits: &QueryLimits, texts: impl Iterator<Item = &'a str>, codec: Codec) -> Result<(), QueryError> {
    let (count, bytes) = texts.fold((0, 0), |(count, bytes), text| (count + 1, bytes + text.len() as u64));
    take_answer(limits, bytes, count, codec)
}

/// A tree for Graphviz, of [`DOT_NODES_MAX`] functions at most.
pub(super) fn dot(tree: &ProfileTree, profile_type: &ProfileType, nodes: usize, limits: &QueryLimits) -> Result<String, QueryError> {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut out = format!("digraph \"{}\" {{\nnode [shape=box]\n", quoted(&profile_type.to_string()));
    limits.take(tree.memory_bytes().saturating_mul(2))?;
    let mut memory = limits.growing();
    let mut above: Vec<usize> = Vec::new();
    for (number, node) in tree.cut(nodes.min(DOT_NODES_MAX)).nodes().into_iter().enumerate().skip(1) {
        above.truncate(node.depth - 1);
        let before = out.len();
        out.push_str(&format!("N{number} [label=\"{}\\n{} of {}\"]\n", quoted(node.name), node.own, node.total));
        if let Some(parent) = above.last() {
            out.push_str(&format!("N{parent} -> N{number} [label=\" {}\"]\n", node.total));
        }
        above.push(number);
        // It becomes a part of the answer, which is a copy.
        memory.take(2 * (out.len() - before) as u64)?;
    }
    out.push_str("}\n");
    Ok(out)
}

/// Texts, each once and in their order.
pub(super) fn distinct<'a>(
    texts: impl Iterator<Item = impl Into<Cow<'a, str>>>,
    limits: &QueryLimits,
) -> Result<BTreeSet<String>, QueryError> {
    let mut memory = limits.growing();
    let mut distinct = BTreeSet::new();
    for text in texts {
        let text: Cow<'_, str> = text.into();
        if !distinct.contains(&*text) {
            memory.take((2 * size_of::<String>() + text.len()) as u64)?;
            distinct.insert(text.into_owned());
        }
    }
    Ok(distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_texts_takes_its_memory_before_it_is_written() {
        use longpole_store::live::{MemoryPool, QueryMemory};
        use std::sync::Arc;

        let limits = QueryLimits { memory: QueryMemory::of(&Arc::new(MemoryPool::new(1 << 20))), ..QueryLimits::default() };
        let text = "\u{1}".repeat(50_000);
        let take = |codec| take_texts(&limits, std::iter::repeat_n(text.as_str(), 2), codec).is_ok();
        assert_eq!([take(Codec::Protobuf), take(Codec::Json)], [true, false]);
    }

    #[test]
    fn a_graph_has_an_edge_for_each_call() {
        let mut tree = ProfileTree::default();
        let names = ["main".into(), "pa\"rse".into()];
        tree.add(names.iter().zip(std::iter::repeat(&"".into())), 3);
        let text = dot(&tree, &"a:b:c:d:e".parse().unwrap(), 10, &QueryLimits::default()).unwrap();
        assert!(text.contains("N2 [label=\"pa\\\"rse\\n3 of 3\"]\nN1 -> N2 [label=\" 3\"]"), "{text}");
    }

    #[test]
    fn a_query_says_how_many_bars_it_wants() {
        assert_eq!([None, Some(0), Some(7), Some(-1), Some(i64::MAX)].map(nodes_max), [NODES, NODES_MAX, 7, NODES, NODES_MAX]);
    }
}
