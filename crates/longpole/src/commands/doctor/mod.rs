//! `doctor`: what longpole can record on this machine, and how to record more.
//!
//! Where it is cheap, each check tries the real thing: it samples a process, opens a port, writes to the store.

mod program;

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Result;
use longpole_capture::launch::child;
use longpole_capture::launch::otel_environment;
use longpole_capture::recorder::{self, Options, Recorder};
use longpole_model::Observation;
use longpole_model::units::{self, counted, duration};
use longpole_store::RecordingState;
use serde::Serialize;

use crate::args::{DoctorArguments, Format};
use crate::env_vars;
use crate::input::load::list;
use crate::invocation::Invocation;
use crate::session::unrecorded_request;
use crate::terminal::screen::{Screen, print, print_json};
use crate::terminal::{Style, pad};

/// Width of the names.
const NAME_WIDTH: usize = 10;

/// The result of one check.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    /// `ok` or `warn`.
    state: &'static str,
    text: String,
    /// What to do about it, if anything.
    remedy: Option<String>,
}

fn ok(name: &'static str, text: impl Into<String>) -> Check {
    Check { name, state: "ok", text: text.into(), remedy: None }
}

fn warn(name: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Check {
    Check { name, state: "warn", text: text.into(), remedy: Some(remedy.into()).filter(|remedy| !remedy.is_empty()) }
}

#[derive(Debug, Serialize)]
struct DoctorView {
    schema: &'static str,
    version: &'static str,
    checks: Vec<Check>,
}

/// Prints all checks. A warning is a result, not a failure.
pub(crate) fn doctor(invocation: &Invocation, arguments: &DoctorArguments) -> Result<()> {
    let environment = env_vars::inherited();
    let mut checks = profiling(&environment);
    checks.push(symbols());
    checks.extend(python(&environment));
    checks.extend(node());
    checks.extend(java());
    checks.push(clock());
    checks.extend(ports());
    checks.extend(otel(&environment));
    checks.extend(pulumi());
    checks.push(store(invocation));
    checks.extend(arguments.program.as_deref().map(program));
    let view = DoctorView { schema: "longpole.doctor/1", version: env!("CARGO_PKG_VERSION"), checks };
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&text(&view, invocation.style())),
    }
}

fn text(view: &DoctorView, style: Style) -> Screen {
    let mut out = Screen::default();
    for check in &view.checks {
        let state = if check.state == "ok" { style.faint(&pad(check.state, 4)) } else { style.warning(&pad(check.state, 4)) };
        out.line(format!("{state}  {}  {}", pad(check.name, NAME_WIDTH), check.text));
        if let Some(remedy) = &check.remedy {
            out.line(format!("{}→ {}", " ".repeat(4 + 2 + NAME_WIDTH + 2), remedy));
        }
    }
    out
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Whether longpole can sample a process with each clock.
fn profiling(environment: &[(OsString, OsString)]) -> Vec<Check> {
    let paranoid = read("/proc/sys/kernel/perf_event_paranoid").map(|level| format!(" (perf_event_paranoid {level})")).unwrap_or_default();
    let attach = |clock| {
        // A child that waits at its gate for ever; it ends with the guard.
        let gated = child::prepare_trial(environment).map_err(|error| (error.to_string(), String::new()))?;
        let nowhere: Vec<Observation> = Vec::new();
        let recorder = Recorder::start(gated.pid(), &Options { clock, ..Options::default() }, Box::new(nowhere));
        let found = |recorder: Recorder| (recorder.clock(), recorder.rate_hz(), recorder.refused().cloned());
        recorder.map(found).map_err(|refused| (refused.to_string(), refused.remedy().unwrap_or_default()))
    };
    let mut checks = Vec::new();
    match attach(recorder::SampleClock::CpuClock) {
        Ok((clock, rate_hz, why_not_kernel)) => {
            checks.push(ok("profiling", format!("samples processes with {clock} at {rate_hz} Hz{paranoid}")));
            checks.push(kernel(why_not_kernel.as_ref()));
        }
        Err((reason, remedy)) => {
            let rest = if recorder::is_proc_of_others() { "spans" } else { "spans, processes, thread totals and long waits" };
            checks.push(warn("profiling", format!("no samples: {reason}{paranoid}; {rest} are still recorded"), remedy));
            return checks;
        }
    }
    match attach(recorder::SampleClock::Cycles) {
        Ok((recorder::SampleClock::Cycles, ..)) => {
            checks.push(ok("cycles", "the CPU has a cycle counter to sample with: run --clock cycles"))
        }
        _ => checks.push(ok("cycles", "sampling uses the kernel's timer, because this CPU shows no cycle counter")),
    }
    checks
}

/// Whether samples show functions of the kernel.
fn kernel(refused: Option<&recorder::Refused>) -> Check {
    match (refused, recorder::can_name_functions()) {
        (None, Ok(())) => ok("kernel", "samples include kernel functions, below the functions that called them"),
        (None, Err(why)) => warn(
            "kernel",
            format!("samples include kernel functions, but not their names: {why}"),
            "sysctl kernel.kptr_restrict=0, with kernel.perf_event_paranoid=1 or the capability CAP_SYSLOG",
        ),
        (Some(why), _) => {
            let remedy = why.remedy().unwrap_or_default();
            ok("kernel", format!("samples show the time in the kernel, but not its functions: {why}; to see them: {remedy}"))
        }
    }
}

/// Where function names come from, besides the binaries themselves.
fn symbols() -> Check {
    let debug = Path::new("/usr/lib/debug");
    if fs::read_dir(debug).is_ok_and(|mut entries| entries.next().is_some()) {
        return ok(
            "symbols",
            "binaries with symbols name their functions, as do stripped ones with a debug file in /usr/lib/debug; others show name+0xADDRESS",
        );
    }
    let text = "binaries with symbols name their functions; /usr/lib/debug has no debug files, so a stripped binary shows name+0xADDRESS";
    warn("symbols", text, "install the debug packages of the libraries you need, such as libc6-dbg")
}

/// Minor versions of CPython 3 whose functions longpole reads.
const PYTHON_MINORS: std::ops::RangeInclusive<u32> = 8..=13;

/// Whether samples show functions of the Python on `PATH`.
fn python(environment: &[(OsString, OsString)]) -> Option<Check> {
    let path = find_on_path("python3").or_else(|| find_on_path("python"))?;
    let version = version_of(&path, "--version").unwrap_or_default();
    let version = version.trim_start_matches("Python ");
    let is_known = matches!(major_and_minor(version), Some((3, minor)) if PYTHON_MINORS.contains(&minor));
    if !is_known {
        let text = format!("{} ({}): samples show the interpreter, not its functions", path.display(), said(version));
        return Some(warn("python", text, "to see its functions, use CPython 3.8 to 3.13"));
    }
    let read =
        child::prepare_trial(environment).map_err(|error| error.to_string()).and_then(|gated| recorder::can_read_memory(gated.pid()));
    Some(match read {
        Ok(()) => ok("python", format!("{version}: samples show its functions, without any option")),
        Err(why) => warn(
            "python",
            format!("{version}: samples show the interpreter, not its functions: {why}"),
            "sysctl kernel.yama.ptrace_scope=1, or a container that allows process_vm_readv",
        ),
    })
}

/// Whether longpole shows JavaScript functions: Node exports what it takes since version 18.
fn node() -> Option<Check> {
    let version = version_of(&find_on_path("node")?, "--version").unwrap_or_default();
    Some(ok("node", format!("{}: samples show its functions, without any option", said(&version))))
}

/// The first version of Java whose virtual machine longpole reads.
const JAVA_MAJOR_MIN: u32 = 17;

/// How to see Java methods. Reads the version from a file, because starting the JVM is slow.
fn java() -> Option<Check> {
    let path = find_on_path("java")?.canonicalize().ok()?;
    let release = path.parent().and_then(Path::parent).and_then(|home| fs::read_to_string(home.join("release")).ok()).unwrap_or_default();
    let version = release.lines().find_map(|line| line.strip_prefix("JAVA_VERSION=")).unwrap_or_default().trim_matches('"');
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let how = if cfg!(target_arch = "x86_64") { "run shows its methods" } else { "run --jit java shows compiled methods" };
    let text = format!("{}: {how}", said(version));
    Some(match major {
        Some(major) if major < JAVA_MAJOR_MIN => {
            warn("java", format!("{version}: its methods show as addresses"), "to see their names, use Java 17 or later")
        }
        _ => ok("java", text),
    })
}

/// The version that a program prints.
fn version_of(path: &Path, flag: &str) -> Option<String> {
    let said = Command::new(path).arg(flag).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
}

fn said(version: &str) -> &str {
    if version.is_empty() { "unknown version" } else { version }
}

/// Whether clocks are cheap to read.
fn clock() -> Check {
    let anchor = longpole_capture::clock::anchor();
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource").unwrap_or_else(|| "unknown".to_owned());
    let text = format!("clock source {source}; reading the wall clock and the monotonic clock takes {}", duration(anchor.bracket_nanos));
    if anchor.bracket_nanos > CLOCK_BRACKET_NANOS_MAX {
        return warn(
            "clock",
            format!("{text}: samples and spans line up that much less exactly"),
            "choose a faster clock source, such as tsc or kvm-clock: see /sys/devices/system/clocksource",
        );
    }
    ok("clock", text)
}

/// Reading both clocks takes 50 ns without a system call, and some microseconds with one.
const CLOCK_BRACKET_NANOS_MAX: u32 = 10_000;

/// Whether a run can open a port, and whether other programs use the default ports of OTLP.
fn ports() -> Vec<Check> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    if let Err(error) = bind(0) {
        return vec![warn(
            "ports",
            format!("failed to open a port on 127.0.0.1: {error}; no spans will be received"),
            "see `ip addr show lo`",
        )];
    }
    let taken: Vec<String> = [4317, 4318].into_iter().filter(|port| bind(*port).is_err()).map(|port: u16| port.to_string()).collect();
    if taken.is_empty() {
        return vec![ok("ports", "a run opens a free port on 127.0.0.1")];
    }
    // It does not disturb a run, but explains where spans go outside of one.
    let text = format!("a run opens a free port on 127.0.0.1; another collector listens on {}", taken.join(" and "));
    vec![ok("ports", text)]
}

/// What the user's own OpenTelemetry variables do to a run.
fn otel(environment: &[(OsString, OsString)]) -> Vec<Check> {
    let injection = otel_environment::environment(&unrecorded_request(environment));
    // The run itself reports what it does with the parent context and with Pulumi's own variable.
    let mut checks: Vec<Check> =
        injection.notes.into_iter().map(|note| warn("otel", note.text, "unset or change it for the run")).collect();
    if injection.forward.is_some() {
        checks.push(ok("otel", "your environment names an OTLP endpoint: a run receives everything and forwards it there"));
    }
    if checks.is_empty() {
        checks.push(ok("otel", "no variable in your environment turns spans off or sends them elsewhere"));
    }
    checks
}

/// What each range of Pulumi versions supports, newest first: lowest version, what a run receives, what to do.
const PULUMI: &[((u32, u32), &str, &str)] = &[
    ((3, 229), "a run receives all spans under one root, without any option", ""),
    (
        (3, 226),
        "a run receives all spans; this version does not continue a trace, so longpole places its spans by process and time",
        "to continue the trace of the run, use Pulumi 3.229 or later",
    ),
    (
        (3, 208),
        "a run receives only the spans of the older tracing (--tracing), which this version sends to the endpoint in the environment",
        "to receive all spans, use Pulumi 3.226 or later; from 3.229 on, it continues the trace of the run",
    ),
    (
        (0, 0),
        "this version reads its tracing endpoint from the command line only",
        "pulumi up --tracing=file:./up.trace, then longpole open ./up.trace; or Pulumi 3.229",
    ),
];

/// The Pulumi on `PATH`.
fn pulumi() -> Option<Check> {
    let path = find_on_path("pulumi")?;
    let said = Command::new(&path)
        .arg("version")
        .env("PULUMI_SKIP_UPDATE_CHECK", "true")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|said| said.status.success())
        .map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
    let Some(version) = said else {
        return Some(warn("pulumi", format!("`{} version` fails", path.display()), "run `pulumi version`"));
    };
    let Some(parsed) = major_and_minor(&version) else {
        return Some(warn(
            "pulumi",
            format!("{} has an unknown version, {version}", path.display()),
            "to receive all spans, use Pulumi 3.229 or later",
        ));
    };
    let (_, text, remedy) = PULUMI.iter().find(|(least, ..)| parsed >= *least)?;
    let text = format!("{version}: {text}");
    Some(if remedy.is_empty() { ok("pulumi", text) } else { warn("pulumi", text, *remedy) })
}

fn major_and_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.trim_start_matches('v').split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether a program may hang on exit, as far as its file shows.
fn program(name: &Path) -> Check {
    let path = match name.to_str() {
        Some(bare) if !bare.contains('/') && !name.exists() => find_on_path(bare).unwrap_or_else(|| name.to_owned()),
        _ => name.to_owned(),
    };
    match program::look_at(&path) {
        Err(error) => warn("program", format!("{} cannot be read: {error}", path.display()), "pass an executable file"),
        Ok(None) => ok("program", format!("{}: contains nothing known to hang when the program exits", path.display())),
        Ok(Some(found)) if found.remedy.is_empty() => ok("program", format!("{}: {}", path.display(), found.text)),
        Ok(Some(found)) => warn("program", format!("{}: {}", path.display(), found.text), found.remedy),
    }
}

fn find_on_path(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|directory| directory.join(name)).find(|path| path.is_file())
}

/// Whether the store is writable, and what it holds.
fn store(invocation: &Invocation) -> Check {
    let root = match invocation.store() {
        Ok(root) => root,
        Err(error) => return warn("store", format!("{error:#}"), "set one with --store or LONGPOLE_STORE"),
    };
    let remedy = "set another with --store or LONGPOLE_STORE";
    let looked = || -> Result<(usize, usize, u64)> {
        let recordings = list(&invocation.open_store()?)?.recordings;
        let probe = root.join(format!("doctor-{}", std::process::id()));
        fs::write(&probe, b"longpole doctor")?;
        fs::remove_file(&probe)?;
        let killed = recordings.iter().filter(|recording| recording.state == RecordingState::Killed).count();
        Ok((recordings.len(), killed, recordings.iter().map(longpole_store::StoredRecording::bytes).sum()))
    };
    match looked() {
        Err(error) => warn("store", format!("{} cannot be used: {error:#}", root.display()), remedy),
        Ok((recordings, killed, bytes)) => {
            let text = format!("{}: {}, {}", root.display(), counted(recordings as u64, "recording", "recordings"), units::bytes(bytes));
            match killed {
                0 => ok("store", text),
                n => {
                    let killed = counted(n as u64, "recorder was", "recorders were");
                    warn("store", format!("{text}; {killed} killed"), "longpole ls lists them; longpole show recovers what was recorded")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(major_and_minor("v3.259.0"), Some((3, 259)));
        assert_eq!(major_and_minor("3.99.0-dev"), Some((3, 99)));
        assert_eq!(major_and_minor("unknown"), None);
        let of = |version| PULUMI.iter().find(|(least, ..)| version >= *least).unwrap().0;
        assert_eq!([of((3, 300)), of((3, 228)), of((3, 99)), of((4, 0))], [(3, 229), (3, 226), (0, 0), (3, 229)]);
    }
}
