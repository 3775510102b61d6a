//! How a program starts heap profiles.

use std::time::Duration;

/// What [`start`](super::start) starts, by choice. Where the environment says something else, it wins.
///
/// ```
/// use std::time::Duration;
///
/// longpole_sdk::heap::Options::new()
///     .service_name("shop")
///     .label("env", "prod")
///     .server("http://localhost:4040")
///     .push_every(Duration::from_secs(60))
///     .start();
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "nothing starts before `start`"]
#[cfg_attr(not(all(target_os = "linux", not(target_arch = "arm"))), allow(dead_code, reason = "nothing starts elsewhere"))]
pub struct Options {
    service: Option<String>,
    labels: Vec<(String, String)>,
    server: Option<String>,
    sample_bytes: Option<u64>,
    push_every: Option<Duration>,
}

impl Options {
    /// Nothing is chosen.
    pub fn new() -> Self {
        Self::default()
    }

    /// The service of the profiles, where neither `OTEL_SERVICE_NAME` nor `OTEL_RESOURCE_ATTRIBUTES` names one.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service = Some(name.into());
        self
    }

    /// A label of the profiles, beside what `OTEL_RESOURCE_ATTRIBUTES` says, `host_name` and `process_pid`.
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.push((name.into(), value.into()));
        self
    }

    /// The server that profiles are pushed to (`http://host:4040`): a `longpole serve` or a Pyroscope. `LONGPOLE_HEAP_SERVER` says another one. Without
    /// either, nothing is pushed, and [`write_pprof`](super::write_pprof) writes profiles.
    pub fn server(mut self, address: impl Into<String>) -> Self {
        self.server = Some(address.into());
        self
    }

    /// How many bytes a sample stands for on average: 512 KiB, unless `LONGPOLE_HEAP_SAMPLE_BYTES` says another number. Fewer cost more and show smaller
    /// leaks; 0 switches sampling off.
    pub fn sample_bytes(mut self, bytes: u64) -> Self {
        self.sample_bytes = Some(bytes);
        self
    }

    /// How often a profile is pushed: every 15 seconds, unless `LONGPOLE_HEAP_PUSH_SECONDS` says another number.
    pub fn push_every(mut self, every: Duration) -> Self {
        self.push_every = Some(every);
        self
    }

    /// Starts sampling, and a thread that pushes if there is a server. Never fails: what cannot be used is reported on stderr. Only the first call of a
    /// process does anything.
    ///
    /// Call it early in `main`, and after a fork that makes a daemon.
    pub fn start(self) {
        #[cfg(all(target_os = "linux", not(target_arch = "arm")))]
        self.start_here();
        #[cfg(not(all(target_os = "linux", not(target_arch = "arm"))))]
        crate::diagnostic::tell(&format!("{}; no heap profile", super::recorder::WHY_NOT));
    }

    #[cfg(all(target_os = "linux", not(target_arch = "arm")))]
    fn start_here(self) {
        use super::{push, recorder};
        use crate::config::{HeapConfig, HeapProgram, ProcessFacts, Program};
        use crate::diagnostic::tell;

        let program = Program { service: self.service, resource: self.labels, ..Program::default() };
        let Options { server, sample_bytes, push_every, .. } = Options { service: None, labels: Vec::new(), ..self };
        let chosen = HeapProgram { program, server, sample_bytes, push_every };
        let config = HeapConfig::read(&crate::environment, &ProcessFacts::of_this(), &chosen);
        config.complaints.iter().for_each(|complaint| tell(complaint));
        if config.sample_bytes == 0 || crate::forks::is_forked_child() {
            return;
        }
        if !recorder::is_installed() {
            tell("the program's #[global_allocator] is not longpole_sdk::heap::Allocator; no heap profile");
            return;
        }
        // A child must know that it is one before it takes a sample.
        crate::thread_context::watch_forks();
        if recorder::start(config.sample_bytes, config.push.is_some())
            && let Some(push) = config.push
        {
            push::start(push);
        }
    }
}
