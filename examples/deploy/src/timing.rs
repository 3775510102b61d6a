//! How long things take: the only numbers from which the poles follow.

use std::time::Duration;

/// How long `provider-compute` bundles: it compresses as much as fits into this time, so that the pole is equally long on a
/// fast machine and on a slow one.
pub const BUNDLING: Duration = Duration::from_millis(1_200);

/// How long a checkpoint of the state file takes, and with it the wait of whoever needs the state.
pub const CHECKPOINT: Duration = Duration::from_millis(600);

/// Pause between two looks at a resource that the cloud is not done with.
pub const CLOUD_POLL: Duration = Duration::from_millis(50);

/// How long the cloud takes for a resource of a type; a multiple of [`CLOUD_POLL`]. `None`: it knows no such type.
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

/// How long a resource of a type takes, whoever creates it.
pub fn create(resource_type: &str) -> Option<Duration> {
    match resource_type {
        crate::compute::BUNDLE => Some(BUNDLING),
        crate::compute::SERVICE => Some(CHECKPOINT),
        other => cloud(other),
    }
}
