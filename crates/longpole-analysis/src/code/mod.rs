//! What ran: frames → functions → who called whom. It knows stacks and samples, and no span that they belong to.

pub mod call_tree;
pub mod origin;
pub mod wall_profile;
