//! All durations: the only numbers that determine the poles.

use std::time::Duration;

use crate::program;

/// Time that `provider-compute` bundles: it compresses as much as fits into it, so that the pole is equally long on a
/// fast machine and on a slow one.
pub const BUNDLING: Duration = Duration::from_millis(1_200);

/// Duration of a checkpoint of the state file, and of the wait for the state.
pub const CHECKPOINT: Duration = Duration::from_millis(600);

/// Pause between two polls of an unfinished cloud resource.
pub const CLOUD_POLL: Duration = Duration::from_millis(50);

/// Time of the cloud for a resource of a type; a multiple of [`CLOUD_POLL`]. `None`: an unknown type.
pub fn cloud(resource_type: &str) -> Option<Duration> {
    let millis = match resource_type {
        "cloud:tls:Certificate" => 800,
        "cloud:lb:LoadBalancer" => 300,
        "cloud:db:Database" => 150,
        "cloud:storage:Bucket" => 150,
        "cloud:net:Network" | "cloud:net:Subnet" | "cloud:storage:Upload" => 100,
        "cloud:dns:Record" | "cloud:monitor:Alarm" => 100,
        "cloud:secret:Secret" => 50,
        _ => return None,
    };
    Some(Duration::from_millis(millis))
}

/// Duration of a resource of a type, whichever provider creates it.
pub fn create(resource_type: &str) -> Option<Duration> {
    match resource_type {
        program::BUNDLE => Some(BUNDLING),
        program::SERVICE => Some(CHECKPOINT),
        other => cloud(other),
    }
}
