//! What ran: frames → functions → who called whom. It knows stacks and samples, and no span that they belong to.

pub mod call_tree;
pub mod functions;
pub mod named;
pub mod origin;
pub(crate) mod paths;
pub(crate) mod stack_frames;
pub mod waited_rows;
pub mod wall_profile;
