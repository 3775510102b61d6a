//! The hang matrix: every span processor, both protocols, outside of any runtime and inside of each flavour, with a collector
//! that lives, one that is dead and one that never answers. The program sets up, makes spans and ends in the same breath, which
//! is where OpenTelemetry's processors hang when they are used as they come.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use longpole_sdk::{Guard, Protocol, SpanCounts, SpanProcessor};
use longpole_testing::holds;
use tracing::{Dispatch, info_span};

use crate::collector::{Collector, dead_endpoint};
use crate::grpc_collector::{GrpcCollector, silent_endpoint};

const SPANS: u64 = 10;

/// What people are promised: a start and a stop together.
const PROMISE: Duration = Duration::from_secs(2);

/// How many attempts must keep it, and of how many: other tests and other people use the machine too. What hangs misses it each time.
const KEPT_OF_ATTEMPTS: (usize, usize) = (2, 4);

/// Cases at a time: they wait, mostly.
const AT_A_TIME: usize = 8;

#[derive(Debug, Clone, Copy)]
enum Where {
    NoRuntime,
    /// On the thread that drives the runtime; the number of its workers, 0 for the flavour of one thread.
    Driving(usize),
    /// In a task.
    Task(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Far {
    Live,
    Dead,
    Silent,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    processor: SpanProcessor,
    protocol: Protocol,
    place: Where,
    far: Far,
}

fn set_up(case: Case, endpoint: &str) -> (Dispatch, Guard) {
    longpole_sdk::builder()
        .service_name("hang")
        .default_endpoint(endpoint)
        .protocol(case.protocol)
        .span_processor(case.processor)
        // Nothing else may end a wait.
        .variables(|name| match name {
            "OTEL_EXPORTER_OTLP_TIMEOUT" | "OTEL_BSP_EXPORT_TIMEOUT" => Some("0".into()),
            _ => None,
        })
        .build()
}

fn program(case: Case, endpoint: &str) -> SpanCounts {
    let (dispatch, guard) = set_up(case, endpoint);
    tracing::dispatcher::with_default(&dispatch, || (0..SPANS).for_each(|_| drop(info_span!("s").entered())));
    guard.shutdown()
}

fn run(case: Case, endpoint: &str) -> SpanCounts {
    use tokio::runtime::Builder;
    let runtime = |workers| match workers {
        0 => Builder::new_current_thread().enable_all().build().unwrap(),
        workers => Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap(),
    };
    match case.place {
        Where::NoRuntime => program(case, endpoint),
        Where::Driving(workers) => runtime(workers).block_on(async { program(case, endpoint) }),
        Where::Task(workers) => {
            let endpoint = endpoint.to_owned();
            runtime(workers).block_on(async move { tokio::spawn(async move { program(case, &endpoint) }).await.unwrap() })
        }
    }
}

/// A collector of a case's own, so that the spans it has are the case's.
enum Collecting {
    Http(Collector),
    Grpc(GrpcCollector),
    Nobody(String),
}

impl Collecting {
    fn start(case: Case) -> Self {
        match (case.far, case.protocol) {
            (Far::Dead, _) => Self::Nobody(dead_endpoint()),
            (Far::Silent, _) => Self::Nobody(silent_endpoint()),
            (Far::Live, Protocol::Grpc) => Self::Grpc(GrpcCollector::start()),
            (Far::Live, _) => Self::Http(Collector::start(&[])),
        }
    }

    fn endpoint(&self) -> &str {
        match self {
            Self::Http(collector) => &collector.endpoint,
            Self::Grpc(collector) => &collector.endpoint,
            Self::Nobody(endpoint) => endpoint,
        }
    }

    fn spans(&self) -> u64 {
        match self {
            Self::Http(collector) => collector.spans().len() as u64,
            Self::Grpc(collector) => collector.spans().len() as u64,
            Self::Nobody(_) => 0,
        }
    }
}

/// Runs a case: how long it took, what became of the spans, and how many came through.
fn attempt(case: Case) -> (Duration, SpanCounts, u64) {
    let collecting = Collecting::start(case);
    let started = Instant::now();
    let counts = run(case, collecting.endpoint());
    (started.elapsed(), counts, collecting.spans())
}

/// What is wrong with it, in time or not.
fn wrong(case: Case, counts: &SpanCounts, came_through: u64) -> bool {
    let sums_up = counts.emitted == SPANS && counts.emitted == counts.exported + counts.lost() + counts.outstanding;
    let arrived = if case.far == Far::Live { SPANS } else { 0 };
    !sums_up || counts.exported != arrived || came_through != arrived
}

#[test]
fn every_case_starts_and_stops_in_time() {
    let places =
        [Where::NoRuntime, Where::Driving(0), Where::Task(0), Where::Driving(1), Where::Task(1), Where::Driving(2), Where::Task(2)];
    let mut cases = Vec::new();
    for far in [Far::Live, Far::Dead, Far::Silent] {
        for processor in SpanProcessor::ALL {
            for protocol in [Protocol::HttpProtobuf, Protocol::Grpc] {
                cases.extend(places.map(|place| Case { processor, protocol, place, far }));
            }
        }
    }
    let (count, cases) = (cases.len(), Mutex::new(cases));
    let longest = Mutex::new(Duration::ZERO);
    let (kept, of) = KEPT_OF_ATTEMPTS;
    let work = || {
        loop {
            let Some(case) = cases.lock().unwrap().pop() else { return };
            holds(kept, of, &format!("{case:?} starts and stops in time"), || {
                let (took, counts, came_through) = attempt(case);
                if took > PROMISE || wrong(case, &counts, came_through) {
                    return Err(format!("{took:?}, {counts:?}, {came_through} spans came through"));
                }
                let mut longest = longest.lock().unwrap();
                *longest = took.max(*longest);
                Ok(())
            });
        }
    };
    std::thread::scope(|scope| (0..AT_A_TIME).for_each(|_| drop(scope.spawn(work))));
    eprintln!("{count} cases, the longest from start to stop: {:?}", longest.into_inner().unwrap());
}
