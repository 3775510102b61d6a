//! Profiles that longpole fetches, of processes that offer them as Go's `net/http/pprof` does.
//!
//! | profile | fetched as | kept as |
//! |---|---|---|
//! | CPU | `profile?seconds=14` | all of it |
//! | memory in use | `heap` | its states: `inuse_space`, `inuse_objects` |
//! | allocations | `allocs?seconds=14` | what it counts: `alloc_space`, `alloc_objects` |
//! | goroutines | `goroutine` | all of it |
//! | locks, other waits | `mutex?seconds=14`, `block?seconds=14` | all of it |
//!
//! Each is fetched again and again, by a task of its own. A count is of the seconds before, not since the start of the process. What is fetched
//! takes the way of a profile that was pushed: the same limits, memory and labels.

mod target;

use std::collections::BTreeSet;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, USER_AGENT};
use http::{Request, StatusCode};
use http_body_util::Full;
use longpole_model::LossKind;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

pub use self::target::{NotAScrapeTarget, ScrapeTarget};
use super::body;
use super::connection::Connection;
use super::job::{Content, ProfileRequest};
use super::request_context::RequestContext;
use super::scraped_profile::{ScrapedProfile, ScrapedValues};
use crate::forward::client::{self, HttpClient};
use crate::forward::target::ForwardTls;
use crate::otlp_request::Compression;
use crate::query_client;

/// How long a process may take beyond the seconds that a profile is of.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(20);

/// Before a profile is looked for again that a process does not have.
const MISSING_PAUSE: Duration = Duration::from_secs(300);

/// Parts of the time between two fetches, in which those of different targets begin.
const STARTS_APART: u32 = 16;

/// Processes whose profiles are fetched.
#[derive(Debug, Clone)]
pub struct Scrapes {
    /// Each with its address.
    pub targets: Vec<ScrapeTarget>,
    /// How often; at least [`Scrapes::EVERY_MIN`].
    pub every: Duration,
    /// Gets a line for people when a target cannot be fetched, and when it can again.
    pub say: fn(String),
}

impl Scrapes {
    /// A profile of CPU time is of whole seconds, and the next one waits for it.
    pub const EVERY_MIN: Duration = Duration::from_secs(2);
}

impl Default for Scrapes {
    fn default() -> Self {
        Scrapes { targets: Vec::new(), every: Duration::from_secs(15), say: |_| {} }
    }
}

/// A profile that processes offer.
#[derive(Debug, Clone, Copy)]
struct Offered {
    /// The end of its address.
    path: &'static str,
    /// The name of its types.
    name: &'static str,
    kept: ScrapedValues,
    /// Whether it is of the seconds after its request.
    takes_seconds: bool,
}

const OFFERED: [Offered; 6] = [
    Offered { path: "profile", name: "process_cpu", kept: ScrapedValues::All, takes_seconds: true },
    Offered { path: "heap", name: "memory", kept: ScrapedValues::States, takes_seconds: false },
    Offered { path: "allocs", name: "memory", kept: ScrapedValues::Counts, takes_seconds: true },
    Offered { path: "goroutine", name: "goroutines", kept: ScrapedValues::All, takes_seconds: false },
    Offered { path: "mutex", name: "mutex", kept: ScrapedValues::Counts, takes_seconds: true },
    Offered { path: "block", name: "block", kept: ScrapedValues::Counts, takes_seconds: true },
];

/// What a target's profiles are doing.
#[derive(Debug, Default)]
struct Health {
    failing: BTreeSet<&'static str>,
}

impl Health {
    /// The line for people, if the first profile fails, or the last one comes again.
    fn note(&mut self, target: &ScrapeTarget, path: &'static str, failed: Option<&str>) -> Option<String> {
        let was_failing = !self.failing.is_empty();
        match failed {
            Some(reason) => {
                self.failing.insert(path);
                (!was_failing).then(|| format!("cannot fetch {} of {}: {reason}", target.address(path), target.service()))
            }
            None => {
                self.failing.remove(path);
                (was_failing && self.failing.is_empty()).then(|| format!("profiles of {target} arrive again"))
            }
        }
    }
}

/// Why a profile was not fetched.
enum Failed {
    /// The process does not offer it.
    Missing,
    Because(String),
    /// It came and was refused, which is counted already.
    Refused(String),
}

impl Failed {
    fn reason(&self) -> &str {
        match self {
            Failed::Missing => "404 Not Found",
            Failed::Because(reason) | Failed::Refused(reason) => reason,
        }
    }
}

/// Begins to fetch all of them, until the receiver ends: on a thread of its own, because a process that sends answers without end, or headers,
/// would keep the receiver from its clients.
pub(super) fn begin(scrapes: Scrapes, context: &Arc<RequestContext>, ended: &watch::Receiver<bool>) {
    if scrapes.targets.is_empty() {
        return;
    }
    let (context, ended) = (Arc::clone(context), ended.clone());
    let book = Arc::clone(&context.book);
    let fetch = move || -> std::io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(fetch_all(&scrapes, &context, ended));
        runtime.shutdown_background();
        Ok(())
    };
    let failed = move |error: std::io::Error| book.add(LossKind::ScrapesFailed, 1, format!("no thread for all profiles: {error}"));
    let on_thread = {
        let failed = failed.clone();
        move || fetch().unwrap_or_else(failed)
    };
    let begun = std::thread::Builder::new().name("longpole-scrape".to_owned()).spawn(on_thread);
    begun.map_or_else(failed, drop);
}

async fn fetch_all(scrapes: &Scrapes, context: &Arc<RequestContext>, mut ended: watch::Receiver<bool>) {
    let mut all = JoinSet::new();
    for (number, target) in (0_u32..).zip(&scrapes.targets) {
        let target = Arc::new(target.clone());
        let health: Arc<Mutex<Health>> = Arc::default();
        let anywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let connection = Arc::new(Connection::of_nobody([anywhere; 2]));
        let begins = Instant::now() + scrapes.every * (number % STARTS_APART) / STARTS_APART;
        for offered in OFFERED {
            let fetcher = Fetcher {
                target: Arc::clone(&target),
                offered,
                every: scrapes.every,
                health: Arc::clone(&health),
                say: scrapes.say,
                connection: Arc::clone(&connection),
                context: Arc::clone(context),
            };
            all.spawn(fetcher.fetch_again_and_again(begins));
        }
    }
    // The tasks end with the set. One that never yields would keep this thread; nobody waits for it.
    let _ = ended.changed().await;
}

/// Fetches one profile of one process again and again.
struct Fetcher {
    target: Arc<ScrapeTarget>,
    offered: Offered,
    every: Duration,
    health: Arc<Mutex<Health>>,
    say: fn(String),
    connection: Arc<Connection>,
    context: Arc<RequestContext>,
}

impl Fetcher {
    async fn fetch_again_and_again(self, begins: Instant) {
        let mut next = begins;
        let mut http = None;
        loop {
            sleep_until(next).await;
            let failed = self.fetch(&mut http).await.err();
            self.note(failed.as_ref());
            next = match failed {
                Some(Failed::Missing) => Instant::now() + MISSING_PAUSE,
                _ => (next + self.every).max(Instant::now()),
            };
        }
    }

    fn note(&self, failed: Option<&Failed>) {
        let path = self.offered.path;
        if let Some(failed) = failed.filter(|failed| !matches!(failed, Failed::Refused(_))) {
            self.context.book.add(
                LossKind::ScrapesFailed,
                1,
                format!("{} of {}: {}", self.target.address(path), self.target.service(), failed.reason()),
            );
        }
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        let line = health.note(&self.target, path, failed.map(Failed::reason));
        drop(health);
        line.into_iter().for_each(self.say);
    }

    /// Fetches it once, and keeps it.
    async fn fetch(&self, http: &mut Option<HttpClient>) -> Result<(), Failed> {
        let because = |error: &(dyn Error + 'static)| Failed::Because(query_client::reason(error, self.target.host()));
        let http = match http {
            Some(http) => http,
            None => http.insert(client::new(self.target.is_https(), false, ForwardTls::default()).await.map_err(Failed::Because)?),
        };
        let seconds = self.offered.takes_seconds.then(|| self.every.as_secs().saturating_sub(1).max(1));
        let uri = self.target.uri(self.offered.path, seconds).map_err(|error| because(&error))?;
        let mut request = Request::get(uri).header(USER_AGENT, client::AGENT);
        if let Some(authorization) = &self.target.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::<Bytes>::default()).map_err(|error| because(&error))?;
        let patience = Duration::from_secs(seconds.unwrap_or(0)) + ANSWER_WAIT_MAX;
        let response = match timeout(patience, http.request(request)).await {
            Ok(response) => response.map_err(|error| because(&error))?,
            Err(_) => return Err(Failed::Because(format!("no answer within {} s", patience.as_secs()))),
        };
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Err(Failed::Missing),
            other => return Err(Failed::Because(other.to_string())),
        }
        let body = body::read(response.into_body(), &self.context.memory, &self.connection).await;
        let body = body.map_err(|error| Failed::Because(error.message()))?;
        let labels = self.target.labels.clone();
        let scraped = ScrapedProfile { labels, name: self.offered.name, kept: self.offered.kept };
        let content = Content::Profiles(ProfileRequest::Scraped(Box::new(scraped)));
        let verdict = self.context.take(content, Compression::Identity, body.bytes.clone(), &self.connection).await;
        verdict.refusal().map_or(Ok(()), |reason| Err(Failed::Refused(reason.to_owned())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_fails_is_named_once() {
        let target: ScrapeTarget = "cart=http://localhost:6060".parse().unwrap();
        let mut health = Health::default();
        assert_eq!(health.note(&target, "heap", None), None);
        let line = health.note(&target, "heap", Some("Connection refused")).unwrap();
        assert_eq!(line, "cannot fetch http://localhost:6060/debug/pprof/heap of cart: Connection refused");
        assert_eq!(health.note(&target, "mutex", Some("Connection refused")), None);
        assert_eq!(health.note(&target, "heap", None), None);
        assert_eq!(health.note(&target, "mutex", None).unwrap(), "profiles of cart at http://localhost:6060/debug/pprof arrive again");
    }
}
