//! The parts of poles in a run whose threads are known, all of them ([`ThreadGraph::of_run`]): what each thread does is a part, on the path and
//! beside it.

use std::collections::HashMap;

use longpole_model::fast_hash::FastMap;
use longpole_model::{Id, Nanos};

use crate::report::Report;
use crate::report::code_poles::{Kept, LEAST_PART};
use crate::report::thread_pieces::Told;
use crate::schedule::own_work::OwnWork;
use crate::schedule::poles::{PartKind, Pole, PolePart};
use crate::time::thread_graph::ThreadGraph;

impl Report {
    /// The parts of a pole on the path, all of it; none where it stays whole.
    pub(super) fn parts_of_threads(&self, graph: &ThreadGraph, pole: &Pole) -> Vec<PolePart> {
        let least = self.wall() / LEAST_PART;
        if pole.on_path < least {
            return Vec::new();
        }
        let pieces = self.thread_pieces(graph, &pole.nodes);
        let mut of_stack: FastMap<Told, Nanos> = FastMap::default();
        for piece in &pieces {
            *of_stack.entry(piece.told).or_default() += if piece.on_path { piece.to - piece.from } else { Nanos::ZERO };
        }
        let kinds = self.kinds(&of_stack, least);
        let mut sums: HashMap<PartKind, Nanos> = HashMap::new();
        for (told, nanos) in &of_stack {
            *sums.entry(kinds[told]).or_default() += *nanos;
        }
        let Some(Kept { kinds: kept, is_whole }) = self.keep(pole, sums, least, false) else { return Vec::new() };
        let rest = if is_whole { PartKind::Busy } else { PartKind::Rest };
        let mut parts: HashMap<PartKind, PolePart> = HashMap::new();
        for piece in pieces {
            let kind = Some(kinds[&piece.told]).filter(|kind| kept.contains_key(kind)).unwrap_or(rest);
            let part = parts.entry(kind).or_insert_with(|| PolePart {
                kind,
                work: OwnWork::default(),
                of_threads: Vec::new(),
                on_path: Vec::new(),
            });
            part.of_threads.push((piece.node, piece.line.place(), piece.from, piece.to));
            if piece.on_path {
                part.on_path.push((piece.node, piece.from, piece.to));
            }
        }
        let mut parts: Vec<PolePart> = parts.into_values().filter(|part| !part.on_path.is_empty()).collect();
        parts.iter_mut().for_each(|part| part.on_path.sort_unstable_by_key(|(_, from, _)| *from));
        parts.sort_by_key(|part| part.on_path.first().map(|(_, from, _)| *from));
        parts
    }
}
