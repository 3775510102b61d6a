//! Windows of made-up hosts.

use std::io;
use std::path::Path;

use longpole_model::{Monotonic, ProcessMemory, ProcessUsage, Sample, SpanId, TraceId, VirtOffset};
use longpole_symbols::ReadSeek;

use super::*;

struct NoFiles;

impl Files for NoFiles {
    fn open(&self, _: &Path) -> io::Result<Box<dyn ReadSeek>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

fn exec(pid: u32, executable: &str) -> [Observation; 2] {
    let (time, name) = (Monotonic(1), executable.trim_start_matches("/bin/").to_owned());
    [
        Observation::ProcessStarted { pid, parent_pid: None, time },
        Observation::ProcessExec { pid, time, name, executable: executable.to_owned(), arguments: vec![executable.to_owned()] },
    ]
}

fn sample(pid: u32, stack: u32, context: ContextRecord) -> Observation {
    Observation::Sample(Sample { time: Monotonic(2), pid, tid: pid, cpu: 0, stack: StackId(stack), weight_nanos: 52_000_000, context })
}

fn tables() -> Vec<Observation> {
    let named = |id: u32, function: &str| Observation::Named {
        id: LocationId(id),
        runtime: Runtime::Python,
        address: None,
        function: function.to_owned(),
        file: "app.py".to_owned(),
        line: 3,
    };
    let kernel = LocationKind::Unmapped { address: longpole_model::AbsAddr(0xffff_ffff_8100_0000) };
    let code = LocationKind::Code { mapping: MappingId(0), address: VirtOffset(0x12ab) };
    vec![
        Observation::Mapping(Mapping { id: MappingId(0), path: "/bin/cart".to_owned(), build_id: vec![1] }),
        named(0, "main"),
        named(1, "hash"),
        Observation::Location { id: LocationId(2), kind: kernel },
        Observation::Location { id: LocationId(3), kind: code },
        Observation::Stack { id: StackId(0), locations: vec![LocationId(1), LocationId(0)] },
        Observation::Stack { id: StackId(1), locations: vec![LocationId(2), LocationId(3)] },
    ]
}

fn window(profiles: &mut HostProfiles, said: &[(u32, &str)]) -> HostWindow {
    let identity = |pid: u32| {
        let service = said.iter().find(|(of, _)| *of == pid).map_or_else(Text::default, |(_, service)| Text::from(*service));
        ProcessIdentity { service, ..ProcessIdentity::default() }
    };
    profiles.window(&(Timestamp(10)..Timestamp(20)), Arc::new(NoFiles), &mut SlowBinaries::default(), &identity)
}

fn values(window: &HostWindow) -> Vec<String> {
    let batch = &window.batch;
    let mut said: Vec<String> = batch
        .values
        .iter()
        .map(|value| {
            let series = &batch.series[value.series as usize];
            let stack = &batch.stacks[value.stack.0 as usize].locations;
            let functions: Vec<&str> = stack.iter().map(|id| batch.locations[id.0 as usize].frames[0].function.as_str()).collect();
            let span = value.span.map_or_else(String::new, |span| format!(" {:?}", span.scope));
            let service = series.label(SERVICE_LABEL).map(Text::as_str).unwrap_or_default();
            format!("{} {service} {} {}{span}", series.profile_type.sample_type, functions.join("<"), value.value / 1_000_000)
        })
        .collect();
    said.sort();
    said
}

#[test]
fn a_window_has_the_cpu_of_each_service_and_nothing_twice() {
    let (mut profiles, mut sink) = HostProfiles::new(vec![("host".into(), "build-1".into())]);
    let span = ContextRecord::Span { trace_id: TraceId::new([7; 16]).unwrap(), span_id: SpanId::new([9; 8]).unwrap() };
    let seen = tables().into_iter().chain(exec(5, "/bin/cart")).chain(exec(6, "/bin/mail")).chain([
        sample(5, 0, ContextRecord::Absent),
        sample(5, 0, ContextRecord::NoSpan),
        sample(5, 0, span),
        sample(6, 0, ContextRecord::Absent),
        sample(6, 1, ContextRecord::Absent),
    ]);
    seen.for_each(|observation| sink.observe(observation).unwrap());
    let first = window(&mut profiles, &[(5, "shop")]);
    assert_eq!(
        values(&first),
        ["cpu mail [kernel]<cart+0x12ab 52", "cpu mail hash<main 52", "cpu shop hash<main 104", "cpu shop hash<main 52 Span"]
    );
    assert_eq!(first.batch.series[0].label("host").map(Text::as_str), Some("build-1"));
    assert!(first.batch.values.iter().all(|value| value.time == Timestamp(10)));
    assert_eq!(first.losses.len(), 1, "{:?}", first.losses);
    assert!(window(&mut profiles, &[]).batch.values.is_empty());
    // Names stay, and nobody asks a process again who it is.
    sink.observe(sample(5, 0, ContextRecord::Absent)).unwrap();
    assert_eq!(values(&window(&mut profiles, &[])), ["cpu shop hash<main 52"]);
}

#[test]
fn memory_is_that_of_processes_that_stay() {
    let (mut profiles, mut sink) = HostProfiles::new(Vec::new());
    let memory = Some(ProcessMemory { resident_bytes: 300_000_000, peak_resident_bytes: 300_000_000 });
    let usage = |pid| {
        Observation::ProcessUsage(ProcessUsage {
            pid,
            time: Monotonic(3),
            memory,
            cpu_nanos: 0,
            minor_faults: 0,
            major_faults: 0,
            io: None,
        })
    };
    let clock = |nanos| {
        Observation::Clock(longpole_model::ClockAnchor {
            monotonic: Monotonic(nanos),
            unix: Timestamp(nanos.cast_signed()),
            bracket_nanos: 0,
        })
    };
    exec(5, "/bin/cart").into_iter().chain([usage(5), clock(30_000_000_000)]).for_each(|it| sink.observe(it).unwrap());
    assert!(values(&window(&mut profiles, &[])).is_empty());
    sink.observe(clock(90_000_000_000)).unwrap();
    let stays = window(&mut profiles, &[]);
    assert_eq!(values(&stays), ["resident cart cart 300"]);
    assert_eq!(stays.batch.series[0].label("pid").map(Text::as_str), Some("5"));
    sink.observe(Observation::ProcessExited { pid: 5, time: Monotonic(4) }).unwrap();
    assert!(values(&window(&mut profiles, &[])).is_empty());
}
