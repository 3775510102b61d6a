//! Is it the cloud or Pulumi itself? The time of a deployment, split along its critical path.
//!
//! ```text
//! path    | engine | plug-in | program | go build | engine | Create db ▓▓········ | blobs | idle |
//! split     engine   plug-in   language  compiling  engine   ▓ provider, · cloud    state   idle
//! ```
//!
//! Each stretch of the path belongs to what its span, or the nearest span above it that tells, does. Together the parts are the
//! wall time of the run.

use longpole_model::{IdVec, Nanos, NodeId, Recording, SampleId};

use crate::pulumi::call::Call;
use crate::pulumi::program_kind::{is_build_tool, is_provider};
use crate::tree::forest::{Forest, NodeSource};

/// Where the time of a deployment went, along the critical path. The parts sum to the wall time of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeploymentTime {
    /// A provider was creating, reading, changing or removing something, or fetching data, and ran no code of its own.
    pub cloud_wait: Nanos,
    /// A provider's own code: on a CPU in one of those calls, or looking at inputs.
    pub provider: Nanos,
    /// Pulumi's engine.
    pub engine: Nanos,
    /// The language host and the program.
    pub language_host: Nanos,
    /// Plug-ins were found, installed, started and configured.
    pub plugin_start: Nanos,
    /// The state was read or written.
    pub state_backend: Nanos,
    /// The program was compiled, or what it needs was fetched.
    pub compile: Nanos,
    /// Nothing of the deployment was there.
    pub idle: Nanos,
}

impl DeploymentTime {
    /// All of it.
    pub fn sum(&self) -> Nanos {
        self.parts().iter().map(|(_, time)| time).sum()
    }

    /// The parts and their words, in the order in which people ask for them.
    pub fn parts(&self) -> [(&'static str, Nanos); 8] {
        [
            ("cloud_wait", self.cloud_wait),
            ("provider", self.provider),
            ("engine", self.engine),
            ("language_host", self.language_host),
            ("plugin_start", self.plugin_start),
            ("state_backend", self.state_backend),
            ("compile", self.compile),
            ("idle", self.idle),
        ]
    }

    fn part(&mut self, part: Part) -> &mut Nanos {
        match part {
            Part::Cloud => &mut self.cloud_wait,
            Part::Provider => &mut self.provider,
            Part::Engine => &mut self.engine,
            Part::LanguageHost => &mut self.language_host,
            Part::PluginStart => &mut self.plugin_start,
            Part::StateBackend => &mut self.state_backend,
            Part::Compile => &mut self.compile,
            Part::Idle => &mut self.idle,
        }
    }
}

/// What a node does in a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Cloud,
    Provider,
    Engine,
    LanguageHost,
    PluginStart,
    StateBackend,
    Compile,
    Idle,
}

/// The part that the name of a span says, the first match. Spans of a bucket are the state's wherever they stand.
fn part_of_span(service: &str, name: &str) -> Option<Part> {
    let name = name.strip_prefix('/').unwrap_or(name);
    let starts = |list: &[&str]| list.iter().any(|p| name.starts_with(p));
    if starts(&["gocloud.dev/", "diyBackend.", "cloudBackend.", "backendClient.", "api/", "HTTP request", "HTTP attempt"]) {
        return Some(Part::StateBackend);
    }
    if let Some(call) = Call::of(name) {
        return Some(match call {
            Call::Register | Call::ReadResource => Part::Engine,
            Call::Check | Call::Diff => Part::Provider,
            _ => Part::Cloud,
        });
    }
    if starts(&["newPlugin", "EnsurePluginsAreInstalled", "installPlugin", "download-plugin", "load-language-host", "run-plugin"])
        || starts(&["pulumirpc.ResourceProvider/", "pulumirpc.Analyzer/"])
        || starts(&["pulumirpc.LanguageRuntime/GetPluginInfo", "pulumirpc.LanguageRuntime/Handshake", "pulumirpc.LanguageRuntime/About"])
    {
        // What is left of a provider's methods: its schema, its configuration, its version.
        return Some(Part::PluginStart);
    }
    if starts(&["pulumirpc.LanguageRuntime/InstallDependencies", "InstallDependencies", "go-mod-download", "go-list-modules"]) {
        return Some(Part::Compile);
    }
    if starts(&["pulumirpc.LanguageRuntime/", "run-program", "execRuntime", "execGo", "execPython", "language-runtime."])
        || service.starts_with("pulumi-language")
    {
        return Some(Part::LanguageHost);
    }
    if starts(&["pulumirpc.ResourceMonitor/", "pulumirpc.Engine/"]) || service == "pulumi-cli" {
        return Some(Part::Engine);
    }
    service.starts_with("pulumi-sdk").then_some(Part::LanguageHost)
}

/// What each node does: itself, or the nearest above it that tells. `None` where the recording is no deployment.
pub(crate) fn parts(recording: &Recording, forest: &Forest) -> Option<IdVec<NodeId, Part>> {
    if !forest.has_placement_rules() {
        return None;
    }
    let mut out: IdVec<NodeId, Part> = IdVec::filled(Part::Idle, forest.len());
    let mut found = false;
    for node in forest.ids().skip(1) {
        let above = forest[node].parent.map_or(Part::Idle, |p| out[p]);
        let own = match forest[node].source {
            NodeSource::Root => None,
            NodeSource::Span(i) => {
                // A bucket's span inside a provider's call is the provider's.
                let span = &recording.spans[i];
                let inside_call = matches!(above, Part::Cloud | Part::Provider);
                part_of_span(span.service_name(), &span.name).filter(|p| !(inside_call && *p == Part::StateBackend))
            }
            NodeSource::Process(i) => (above == Part::LanguageHost && is_build_tool(&recording.processes[i])).then_some(Part::Compile),
        };
        found |= own.is_some();
        out[node] = own.unwrap_or(above);
    }
    found.then_some(out)
}

/// Adds up stretches of the path: the part each belongs to, how long it is, and how much of it a provider ran.
pub(crate) fn add_up(stretches: impl Iterator<Item = (Part, Nanos, Nanos)>) -> DeploymentTime {
    let mut out = DeploymentTime::default();
    for (part, length, ran) in stretches {
        let ran = if part == Part::Cloud { ran.clamp(Nanos::ZERO, length) } else { Nanos::ZERO };
        *out.part(Part::Provider) += ran;
        *out.part(part) += length - ran;
    }
    out
}

/// Samples of the programs that serve a provider's calls, as offsets from the start of the run: sums of their weights before.
pub(crate) struct ProviderCpu {
    at: Vec<Nanos>,
    before: Vec<Nanos>,
}

impl ProviderCpu {
    pub(crate) fn new(recording: &Recording, forest: &Forest, offsets: &IdVec<SampleId, Nanos>) -> ProviderCpu {
        let mut samples: Vec<(Nanos, Nanos)> = recording
            .samples
            .iter()
            .zip(offsets)
            .filter(|(s, at)| {
                let when = forest.run_range().start.plus_nanos(at.0);
                forest.process_at(s.pid, when).is_some_and(|p| is_provider(forest.program(recording, p)))
            })
            .map(|(s, at)| (*at, Nanos::from_u64(s.weight_nanos)))
            .collect();
        samples.sort_unstable();
        let mut out = ProviderCpu { at: Vec::with_capacity(samples.len()), before: vec![Nanos::ZERO] };
        let mut sum = Nanos::ZERO;
        for (at, weight) in samples {
            sum += weight;
            out.at.push(at);
            out.before.push(sum);
        }
        out
    }

    /// CPU time of providers between two moments.
    pub(crate) fn between(&self, from: Nanos, to: Nanos) -> Nanos {
        let place = |t: Nanos| self.at.partition_point(|&at| at < t);
        self.before[place(to)] - self.before[place(from).min(place(to))]
    }
}

#[cfg(test)]
mod tests {
    use crate::Report;
    use longpole_model::{Nanos, text};

    /// The parts in milliseconds, those of nothing left out.
    fn check(input: &str, expected: &str) {
        let report = Report::new(text::parse(input).unwrap());
        let time = report.deployment_time().unwrap();
        assert_eq!(time.sum(), report.wall());
        let drawn: Vec<String> =
            time.parts().iter().filter(|p| p.1 != Nanos::ZERO).map(|(word, time)| format!("{word} {}", time.0 / 1_000_000)).collect();
        assert_eq!(drawn.join(", "), expected);
    }

    #[test]
    fn each_stretch_of_the_path_belongs_to_what_worked_then() {
        check(
            "\
run pulumi up  0..1000ms
  pulumi  10..990ms  pulumi-cli  pid 1
    newPlugin  20..70ms  pulumi-cli
    gocloud.dev/blob.NewReader  71..91ms  pulumi-cli
    pulumirpc.LanguageRuntime/Run  100..900ms  pulumi-cli  kind client
      pulumirpc.ResourceMonitor/RegisterResource  500..880ms  pulumi-sdk-go  kind client
        pulumirpc.ResourceProvider/Create  510..860ms  pulumi-cli  kind client
          pulumirpc.ResourceProvider/Create  511..859ms  aws  kind server
    gocloud.dev/blob.NewWriter  910..960ms  pulumi-cli
process pulumi-language-go  95..985ms  pid 2 under 1
process go       110..410ms  pid 3 under 2
process program  411..890ms  pid 4 under 2
process pulumi-resource-aws  20..985ms  pid 5 under 1
sample 600ms x50 pid 5 main
",
            "cloud_wait 300, provider 50, engine 90, language_host 120, plugin_start 50, state_backend 70, compile 300, idle 20",
        );
    }

    #[test]
    fn a_run_that_is_no_deployment_has_no_split() {
        assert_eq!(Report::new(text::parse("run x 0..9ms\n  a 1..2ms\n").unwrap()).deployment_time(), None);
    }
}
