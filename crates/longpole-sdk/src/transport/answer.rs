//! What a collector answers, over whichever protocol.

use std::time::Duration;

/// How the SDK names itself to a collector.
pub(crate) const USER_AGENT: &str = concat!("OTel-OTLP-Exporter-Longpole/", env!("CARGO_PKG_VERSION"));

/// What a collector said to a batch.
pub(crate) enum Answer {
    Accepted {
        rejected: u64,
    },
    /// Worth another try, after a pause that the collector may have named.
    NotNow {
        why: String,
        pause: Option<Duration>,
    },
    Refused {
        why: String,
    },
}
