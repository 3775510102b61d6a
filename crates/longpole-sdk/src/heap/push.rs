//! The thread that pushes profiles to a server, every few seconds and once more when the process ends.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::profile::{self, Before, KnownFunctions};
use crate::at_exit::Ends;
use crate::config::HeapPush;
use crate::diagnostic::tell;
use crate::locks::{deadline, lock, lock_briefly};
use crate::span_context::ContextWords;
use crate::transport::http;
use crate::{SHUTDOWN_DEADLINE, at_exit, own_threads, sys, thread_context};

/// For each phase of a push: a server answers when its disk has the profile.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A server's answer is a few bytes; more is not read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// What the thread and the end of the process share.
#[derive(Default)]
struct PushEnd {
    state: Mutex<PushState>,
    changed: Condvar,
    /// The last push failed: nobody waits for another one.
    has_failed: AtomicBool,
}

#[derive(Default)]
struct PushState {
    is_ending: bool,
    has_ended: bool,
}

impl Ends for PushEnd {
    /// Has the last profile pushed, waiting no longer than for spans, nor for a server that did not answer the last time.
    fn end(&self) {
        let Some(mut state) = lock_briefly(&self.state) else { return };
        state.is_ending = true;
        self.changed.notify_all();
        let deadline = deadline(if self.has_failed.load(Relaxed) { Duration::ZERO } else { SHUTDOWN_DEADLINE });
        while !state.has_ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts the thread.
pub(super) fn start(config: HeapPush) {
    let shared = Arc::new(PushEnd::default());
    let theirs = Arc::clone(&shared);
    let server = config.server.clone();
    let run = move || Pusher::new(config).run(&theirs);
    let builder = own_threads::builder();
    match sys::with_signals_blocked(|| builder.spawn(run)) {
        Ok(_) => {
            let ends: Weak<PushEnd> = Arc::downgrade(&shared);
            at_exit::register(ends);
        }
        Err(error) => tell(&format!("cannot start a thread: {error}; pushing no heap profiles to {server}")),
    }
}

struct Pusher {
    config: HeapPush,
    known: KnownFunctions,
    /// What the server has of what was allocated, and until when.
    before: Before,
    from: Instant,
    /// An outage was reported, and is not over.
    is_out: bool,
    /// What had no room was reported.
    told_losses: bool,
}

impl Pusher {
    fn new(config: HeapPush) -> Self {
        Self {
            config,
            known: KnownFunctions::default(),
            before: Before::default(),
            from: Instant::now(),
            is_out: false,
            told_losses: false,
        }
    }

    fn run(mut self, shared: &PushEnd) {
        // To the profiler, this thread works for no span; to our layer, what it does is not the program's.
        thread_context::publish(ContextWords::NONE);
        own_threads::mark();
        match http::agent(self.config.tls.as_ref()) {
            Ok(agent) => while self.turn(shared, &agent) {},
            Err(why) => tell(&format!("{why}; pushing no heap profiles to {}", self.config.server)),
        }
        lock(&shared.state).has_ended = true;
        shared.changed.notify_all();
    }

    /// Waits and pushes; whether there is another turn.
    fn turn(&mut self, shared: &PushEnd, agent: &ureq::Agent) -> bool {
        let state = lock(&shared.state);
        let waited = shared.changed.wait_timeout_while(state, self.config.every, |state| !state.is_ending);
        let is_ending = waited.unwrap_or_else(PoisonError::into_inner).0.is_ending;
        let now = Instant::now();
        let (bytes, until) = profile::since(&self.before, now - self.from, &mut self.known);
        match self.push(agent, &bytes, now - self.from) {
            Ok(()) => {
                // Otherwise the next profile has what this one had, by stack.
                (self.before, self.from) = (until, now);
                self.report_recovery();
            }
            Err(why) if !self.is_out => {
                tell(&format!("cannot push a heap profile to {}: {why}; trying again every {:?}", self.config.server, self.config.every));
                self.is_out = true;
            }
            Err(_) => {}
        }
        shared.has_failed.store(self.is_out, Relaxed);
        if !self.told_losses
            && let Some(losses) = profile::losses()
        {
            self.told_losses = true;
            tell(&format!("heap profile: {losses}"));
        }
        !is_ending
    }

    fn report_recovery(&mut self) {
        if std::mem::take(&mut self.is_out) {
            tell(&format!("heap profiles arrive at {} again", self.config.server));
        }
    }

    fn push(&self, agent: &ureq::Agent, profile: &[u8], length: Duration) -> Result<(), String> {
        let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let from = until.saturating_sub(length);
        let url = format!("{}&from={}&until={}&format=pprof&spyName=longpole-sdk", self.config.url, from.as_nanos(), until.as_nanos());
        let mut request = http::post(agent, url, Some(TIMEOUT)).header("content-type", "application/octet-stream");
        for (name, value) in &self.config.headers {
            request = request.header(name, value);
        }
        let mut response = request.send(profile).map_err(|error| error.to_string())?;
        let status = response.status();
        // Read to its end, the connection can be used again. The status has decided already.
        let answer = response.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().unwrap_or_default();
        if status.is_success() {
            return Ok(());
        }
        let reason: String = answer.trim().chars().take(200).collect();
        Err(if reason.is_empty() { format!("status {}", status.as_u16()) } else { format!("status {}: {reason}", status.as_u16()) })
    }
}
