//! What a process says of itself to whoever runs it: the service in its environment, and the container in its control group.

use std::fs::File;
use std::io::Read;

/// The variables of OpenTelemetry that name a service.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const RESOURCE_ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// Bytes that are read of an environment: a process can say that any part of its memory is one (PR_SET_MM).
const READ_BYTES_MAX: u64 = 256 << 10;

/// Digits of the id of a container, and how many of them people use.
const CONTAINER_DIGITS: usize = 64;
const CONTAINER_DIGITS_SHOWN: usize = 12;

/// The service and the container of a process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Identity {
    /// Its service.
    pub service: Option<String>,
    /// The container that it runs in, by the first digits of its id.
    pub container: Option<String>,
}

/// Reads it. What may not be read, or is not there any more, is nothing.
pub fn of_process(pid: u32) -> Identity {
    let read = |file: &str| {
        let mut bytes = Vec::new();
        // What was read before an error may still say who it is.
        let _ = File::open(format!("/proc/{pid}/{file}")).and_then(|file| file.take(READ_BYTES_MAX).read_to_end(&mut bytes));
        bytes
    };
    Identity { service: service_of(&read("environ")), container: container_of(&String::from_utf8_lossy(&read("cgroup"))) }
}

/// The service in an environment, as `proc_pid_environ(5)` shows it.
fn service_of(environment: &[u8]) -> Option<String> {
    let value = |wanted: &str| {
        let mut pairs = environment.split(|byte| *byte == 0).filter_map(|pair| std::str::from_utf8(pair).ok()?.split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value).filter(|value| !value.is_empty())
    };
    let of_attributes = || {
        let mut attributes = value(RESOURCE_ATTRIBUTES)?.split(',').filter_map(|pair| pair.split_once('='));
        attributes.find(|(name, _)| name.trim() == "service.name").map(|(_, value)| value.trim())
    };
    value(SERVICE_NAME).or_else(of_attributes).map(str::to_owned)
}

/// The container in a list of control groups (cgroups(7)): Docker, containerd, CRI-O and Podman name the group by the id.
fn container_of(groups: &str) -> Option<String> {
    groups
        .split(|c: char| !c.is_ascii_hexdigit())
        .find(|word| word.len() == CONTAINER_DIGITS)
        .map(|id| id[..CONTAINER_DIGITS_SHOWN].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_by_its_environment() {
        let of = |text: &str| service_of(text.as_bytes());
        assert_eq!(of("PATH=/bin\0OTEL_SERVICE_NAME=cart\0"), Some("cart".to_owned()));
        assert_eq!(of("OTEL_RESOURCE_ATTRIBUTES=env=prod,service.name=cart\0"), Some("cart".to_owned()));
        assert_eq!(of("OTEL_RESOURCE_ATTRIBUTES=service.name=a\0OTEL_SERVICE_NAME=b\0"), Some("b".to_owned()));
        assert_eq!(of("OTEL_SERVICE_NAME=\0PATH=/bin"), None);
    }

    #[test]
    fn a_container_is_named_by_its_group() {
        let id = "3f4a".repeat(16);
        let short = Some("3f4a3f4a3f4a".to_owned());
        assert_eq!(container_of(&format!("0::/system.slice/docker-{id}.scope\n")), short);
        assert_eq!(container_of(&format!("12:cpu:/kubepods/burstable/pod1b4e28ba-2fa1-11d2-883f-0016d3cca427/{id}\n")), short);
        assert_eq!(container_of("0::/user.slice/user-1000.slice/session-2.scope\n"), None);
    }

    #[test]
    fn a_process_that_is_gone_says_nothing() {
        assert_eq!(of_process(u32::MAX), Identity::default());
    }
}
