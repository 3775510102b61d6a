//! Sends the requests of an agent, in their order, and keeps them while the server is away.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use longpole_capture::launch::signals;
use longpole_model::profile::SERVICE_LABEL;
use longpole_model::units::counted;
use longpole_model::{Loss, LossKind, Timestamp};
use longpole_recording::host_profiles::pushes;
use longpole_wire::pyroscope::push::PushedSeries;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::spool::Spool;
use crate::input::server::{PushOutcome, Server};
use crate::terminal::stderr::note;

/// How long to send what waits: the others follow the next window.
const CATCHING_UP_MAX: Duration = Duration::from_secs(5);

/// How long not to report the same again.
const SAID_AGAIN: Duration = Duration::from_secs(600);

/// Bytes of the profiles of one request, compressed: a server takes 64 MiB without compression.
const REQUEST_BYTES: usize = 2 << 20;

/// Series in requests of a size that a server takes.
fn parts<'a, 's>(series: &'a [PushedSeries<'s>]) -> Vec<&'a [PushedSeries<'s>]> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (place, one) in series.iter().enumerate() {
        let size: usize = one.profiles.iter().map(|profile| profile.bytes.len()).sum();
        if place > start && bytes + size > REQUEST_BYTES {
            parts.push(&series[start..place]);
            (start, bytes) = (place, 0);
        }
        bytes += size;
    }
    parts.push(&series[start..]);
    parts
}

/// How many services these series are of.
fn services(series: &[PushedSeries<'_>]) -> u64 {
    let labels = series.iter().flat_map(|series| &series.labels);
    let names: HashSet<&str> = labels.filter(|(name, _)| name == SERVICE_LABEL).map(|(_, service)| service.as_str()).collect();
    names.len() as u64
}

/// The way to the server.
#[derive(Debug)]
pub(super) struct Outbox {
    server: Server,
    spool: Spool,
    /// Why the last request did not arrive; `None` while they arrive.
    away: Option<String>,
    /// Until when to search for the series of a window that the server refuses.
    search_until: Instant,
    /// Whether a window arrived.
    has_begun: bool,
    dropped: u64,
    /// When it last reported something, by kind.
    said: BTreeMap<&'static str, Instant>,
}

impl Outbox {
    /// With what an agent before could not send.
    pub(super) fn open(server: &str, spools: &Path, bytes_max: u64) -> Result<Outbox> {
        // What waits for one server is not for another.
        let spool = spools.join(utf8_percent_encode(server, NON_ALPHANUMERIC).to_string());
        let opened = Spool::open(spool.clone(), bytes_max).with_context(|| format!("failed to open the spool {}", spool.display()))?;
        Ok(Outbox {
            server: Server::new(server),
            spool: opened,
            away: None,
            search_until: Instant::now(),
            has_begun: false,
            dropped: 0,
            said: BTreeMap::new(),
        })
    }

    /// Sends a window, behind all that wait.
    pub(super) fn send(&mut self, series: &[PushedSeries<'_>], began: Timestamp) {
        self.catch_up();
        self.search_until = Instant::now() + CATCHING_UP_MAX;
        for (number, part) in parts(series).into_iter().enumerate() {
            // The name of a file is its time, and no two parts have the same.
            self.send_part(part, began.plus_nanos(i64::try_from(number).unwrap_or(i64::MAX)));
        }
        if !self.has_begun && self.away.is_none() && self.dropped == 0 {
            self.has_begun = true;
            note(format!(
                "the server has the first profiles, of {}; longpole profile --at lists them, with the address of its page",
                counted(services(series), "service", "services")
            ));
        }
    }

    fn send_part(&mut self, series: &[PushedSeries<'_>], began: Timestamp) {
        // Those that wait come first, and the server must not get a window twice.
        if self.spool.len() > 0 {
            return self.keep(series, began);
        }
        match self.server.push_profiles(&pushes::body(series, false)) {
            PushOutcome::Taken => self.is_back(),
            // One series that the server does not take costs no other one, but a server that takes none must not hold the agent.
            PushOutcome::Refused(_) if series.len() > 1 && !signals::interrupted() && Instant::now() < self.search_until => {
                let (first, second) = series.split_at(series.len() / 2);
                self.send_part(first, began);
                self.send_part(second, began.plus_nanos(i64::try_from(first.len()).unwrap_or(i64::MAX)));
            }
            PushOutcome::Refused(reason) => self.refused(&reason),
            PushOutcome::Away(reason) => {
                self.is_away(reason);
                self.keep(series, began);
            }
        }
    }

    /// Sends what waits, until the server does not answer.
    fn catch_up(&mut self) {
        let until = Instant::now() + CATCHING_UP_MAX;
        while Instant::now() < until {
            let Some(first) = self.spool.first() else { return };
            let outcome = match first {
                Ok(body) => self.server.push_profiles(&body),
                Err(error) => PushOutcome::Refused(format!("failed to read the spool: {error}")),
            };
            match outcome {
                PushOutcome::Taken => self.is_back(),
                PushOutcome::Refused(reason) => self.refused(&reason),
                PushOutcome::Away(reason) => return self.is_away(reason),
            }
            if let Err(error) = self.spool.remove_first() {
                self.once("spool", &format!("failed to remove a request from the spool: {error}"));
            }
        }
    }

    fn keep(&mut self, series: &[PushedSeries<'_>], began: Timestamp) {
        match self.spool.add(&pushes::body(series, true), began) {
            Ok(0) => {}
            Ok(dropped) => {
                self.dropped += dropped;
                self.once("dropped", "too many profiles wait on disk: the oldest are dropped");
            }
            Err(error) => {
                self.dropped += 1;
                self.once("spool", &format!("failed to keep a profile on disk, it is lost: {error}"));
            }
        }
    }

    fn is_away(&mut self, reason: String) {
        if self.away.is_none() {
            note(format!("{reason}; profiles are kept on disk and sent later"));
        }
        self.away = Some(reason);
    }

    fn is_back(&mut self) {
        if self.away.take().is_some() {
            let dropped = if self.dropped > 0 { format!("; {} were dropped", self.dropped) } else { String::new() };
            note(format!("the server takes profiles again{dropped}"));
            self.said.remove("dropped");
        }
    }

    fn refused(&mut self, reason: &str) {
        self.dropped += 1;
        self.once("refused", &format!("the server refuses a profile, which is lost: {reason}"));
    }

    /// Says something that lasts, and again after [`SAID_AGAIN`].
    fn once(&mut self, kind: &'static str, text: &str) {
        if self.said.get(kind).is_none_or(|said| said.elapsed() >= SAID_AGAIN) {
            self.said.insert(kind, Instant::now());
            note(text);
        }
    }

    /// Something is missing from the profiles.
    pub(super) fn lose(&mut self, loss: &Loss) {
        // Stacks that end early, and binaries without symbols, are to be seen in the profiles themselves.
        if matches!(loss.kind, LossKind::ProfilingRefused | LossKind::SamplesLost) {
            self.once(loss.kind.as_str(), &format!("{} ({})", loss.detail, loss.count));
        }
    }

    /// Says what is left behind.
    pub(super) fn finish(mut self) {
        self.catch_up();
        if self.spool.len() > 0 {
            note(format!(
                "{} profiles are unsent: the next `longpole agent` with this store and the same --to sends them",
                self.spool.len()
            ));
        }
        if self.dropped > 0 {
            note(format!("{} profiles were lost", self.dropped));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use longpole_wire::pyroscope::push::RawProfile;

    use super::*;

    #[test]
    fn a_window_is_sent_in_requests_of_a_size() {
        let series = |bytes: usize| {
            let profile = RawProfile { id: String::new(), bytes: Cow::Owned(vec![0; bytes]) };
            PushedSeries { labels: Vec::new(), profiles: vec![profile] }
        };
        let sizes = |bytes: &[usize]| {
            let all: Vec<PushedSeries<'_>> = bytes.iter().map(|bytes| series(*bytes)).collect();
            parts(&all).iter().map(|part| part.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&[10; 5]), [5]);
        assert_eq!(sizes(&[REQUEST_BYTES, 1, REQUEST_BYTES / 2, REQUEST_BYTES / 2]), [1, 2, 1]);
        assert_eq!(sizes(&[9 * REQUEST_BYTES, 1]), [1, 1]);
    }
}
