//! Trees for tests.

use longpole_model::Text;

use super::ProfileTree;

/// The tree of these stacks, functions with `;` between them, the root first.
pub(super) fn tree(stacks: &[(&str, i64)]) -> ProfileTree {
    let mut tree = ProfileTree::default();
    for (stack, value) in stacks {
        let functions: Vec<Text> = stack.split(';').map(Text::from).collect();
        tree.add(functions.iter().zip(std::iter::repeat(&Text::new())), *value);
    }
    tree
}
