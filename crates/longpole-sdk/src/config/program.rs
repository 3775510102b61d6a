//! What the program says of itself.

use crate::options::{Protocol, SpanProcessor};

/// What the program says of itself. Its choices of how to send win over the environment, for they come from its own command
/// line; what it calls itself and where it sends by default gives way to it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Program {
    pub(crate) service: Option<String>,
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) endpoint: Option<String>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) processor: Option<SpanProcessor>,
}
