//! A tree of calls as lines, with calls folded that only lead to the next one.
//!
//! ```text
//! main
//! ⋮ 4 frames in between        serve, accept, handle, route: each calls only the next one
//! checkout
//!  ├ price
//!  └ reserve
//! ```

use longpole_model::units::counted;

/// Least number of consecutive frames that only call the next one to fold into one line.
const FOLDED_MIN: usize = 3;

/// The printed rows of a tree of calls, and their depth. Row 0 is the root, which is not printed.
pub(super) struct FoldedCalls {
    /// The row that called each row.
    parent: Vec<usize>,
    is_visible: Vec<bool>,
    /// Rows that only call the next one: visible, an only child with an only child, and hardly any self time.
    passes_on: Vec<bool>,
    /// How well the name of each row describes a chain of such rows; 0: not at all.
    names: Vec<u8>,
    /// Rows that are not printed.
    pub(super) hidden: usize,
}

pub(super) enum CallLine {
    Row {
        row: usize,
        depth: usize,
    },
    /// Frames that only call the next one.
    Folded {
        frames: usize,
        depth: usize,
    },
}

impl FoldedCalls {
    pub(super) fn new(parent: Vec<usize>, names: Vec<u8>, is_visible: impl Fn(usize) -> bool, has_no_own: impl Fn(usize) -> bool) -> Self {
        let rows = parent.len();
        let is_visible: Vec<bool> = (0..rows).map(|row| row > 0 && is_visible(row)).collect();
        let mut children = vec![0; rows];
        for row in (1..rows).filter(|row| is_visible[*row]) {
            children[parent[row]] += 1;
        }
        let passes_on =
            (0..rows).map(|row| is_visible[row] && children[parent[row]] == 1 && children[row] == 1 && has_no_own(row)).collect();
        let hidden = (1..rows).filter(|row| !is_visible[*row]).count();
        FoldedCalls { parent, is_visible, passes_on, names, hidden }
    }

    pub(super) fn lines(&self) -> Vec<CallLine> {
        let mut lines = Vec::new();
        let mut depths = vec![0; self.is_visible.len()];
        let mut row = 1;
        while row < self.is_visible.len() {
            if !self.is_visible[row] {
                row += 1;
                continue;
            }
            let parent = self.parent[row];
            let depth = if parent == 0 { 0 } else { depths[parent] + 1 };
            // Such frames are consecutive: the only visible child of one is the next visible row.
            let chain: Vec<usize> =
                (row..self.is_visible.len()).filter(|r| self.is_visible[*r]).take_while(|r| self.passes_on[*r]).collect();
            if chain.len() < FOLDED_MIN {
                depths[row] = depth;
                lines.push(CallLine::Row { row, depth });
                row += 1;
                continue;
            }
            chain.iter().for_each(|r| depths[*r] = depth);
            // The innermost of those that describe the chain best.
            let named = (0..chain.len()).max_by_key(|place| self.names[chain[*place]]).filter(|place| self.names[chain[*place]] > 0);
            let (before, after) = named.map_or((chain.len(), 0), |place| (place, chain.len() - place - 1));
            if before > 0 {
                lines.push(CallLine::Folded { frames: before, depth });
            }
            if let Some(place) = named {
                lines.push(CallLine::Row { row: chain[place], depth });
            }
            if after > 0 {
                lines.push(CallLine::Folded { frames: after, depth });
            }
            row = chain[chain.len() - 1] + 1;
        }
        lines
    }
}

/// `⋮ 4 frames in between`
pub(super) fn folded_in_words(frames: usize, depth: usize) -> String {
    let frames = frames as u64;
    match depth {
        // Above the first row nothing is in between.
        0 => format!("⋮ {}", counted(frames, "outer frame", "outer frames")),
        _ => format!("⋮ {} in between", counted(frames, "frame", "frames")),
    }
}
