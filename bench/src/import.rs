//! The speed of imports: a million spans of OTLP JSON lines into a recording, and an `up.trace` of a deployment to its poles.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{Subject, generate, peers, timing};

const ROUNDS: usize = 5;

/// Spans of the file of OTLP JSON lines.
const OTLP_SPANS: usize = 1_000_000;

/// Spans of the `up.trace`: with its duplication, 80 to 100 MB.
const UP_TRACE_SPANS: usize = 12_000;

/// Pause between two readings of the memory of a child; the kernel keeps the largest, so only the very end can be missed.
const LOOK: Duration = Duration::from_millis(2);

/// Prints wall and CPU time, memory, and spans a second and core, beside Pulumi's commands where it is installed.
pub(crate) fn measure(subjects: &[Subject]) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("longpole-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir).context("failed to make a temporary folder")?;
    let measured = in_folder(subjects, &dir);
    std::fs::remove_dir_all(&dir).ok();
    measured
}

fn in_folder(subjects: &[Subject], dir: &Path) -> Result<()> {
    let path = |name: &str| dir.join(name).to_string_lossy().into_owned();
    let (lines, trace) = (path("spans.jsonl"), path("up.trace"));
    generate::generate(&["--spans", &OTLP_SPANS.to_string(), "--shape", "many", "-o", &lines])?;
    generate::generate(&["--spans", &UP_TRACE_SPANS.to_string(), "--format", "up.trace", "-o", &trace])?;
    let megabytes = |file: &str| std::fs::metadata(file).map(|data| data.len() as f64 / 1e6);
    println!(
        "import, {ROUNDS} rounds: {OTLP_SPANS} spans of OTLP JSON lines ({:.0} MB), {UP_TRACE_SPANS} spans of an up.trace ({:.0} MB)",
        megabytes(&lines)?,
        megabytes(&trace)?
    );
    type Once = fn(&[&str], &[(&str, &str)]) -> Result<Taken>;
    let kinds: [(&str, Option<usize>, Once, &[&str]); 4] = [
        ("import spans.jsonl", Some(OTLP_SPANS), watched, &["import", &lines]),
        ("poles up.trace", Some(UP_TRACE_SPANS), watched, &["poles", &trace]),
        ("convert-trace up.trace", None, watched, &["convert-trace", &trace]),
        ("view-trace up.trace", None, served, &["view-trace", "--no-browser", &trace]),
    ];
    for (kind, spans, once, arguments) in kinds {
        let mut rows: Vec<Row<'_>> = Vec::new();
        for Subject { name, binary } in subjects {
            let store = path(name);
            let once = move || once(&[&[binary.as_str(), "--store", &store], arguments].concat(), &[]);
            rows.push((format!("{name} {kind}"), Box::new(once)));
        }
        print_rows(spans, &rows)?;
    }
    if subjects.len() > 1 {
        return Ok(());
    }
    let Some(pulumi) = peers::find("pulumi") else { return Ok(()) };
    let env = [("PULUMI_DEBUG_COMMANDS", "true"), ("PULUMI_SKIP_UPDATE_CHECK", "true")];
    print_rows(None, &[("pulumi convert-trace up.trace".to_owned(), Box::new(|| watched(&[&pulumi, "convert-trace", &trace], &env)))])?;
    print_rows(None, &[("pulumi view-trace up.trace".to_owned(), Box::new(|| served(&[&pulumi, "view-trace", &trace], &env)))])
}

/// The cost of one execution.
struct Taken {
    wall_secs: f64,
    cpu_secs: f64,
    /// Its largest resident memory.
    megabytes: f64,
}

/// The name of a command, and a function that executes it once.
type Row<'a> = (String, Box<dyn Fn() -> Result<Taken> + 'a>);

/// Interleaved rounds of these commands: wall and CPU time, memory and, where the spans are known, spans a second of CPU time, which a busy
/// machine changes least.
fn print_rows(spans: Option<usize>, rows: &[Row<'_>]) -> Result<()> {
    let mut taken: Vec<Vec<Taken>> = rows.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for ((_, once), taken) in rows.iter().zip(&mut taken) {
            taken.push(once()?);
        }
    }
    for ((name, _), taken) in rows.iter().zip(&taken) {
        let median = |of: fn(&Taken) -> f64| timing::median(&taken.iter().map(of).collect::<Vec<_>>());
        let (wall, cpu, memory) = (median(|it| it.wall_secs * 1e3), median(|it| it.cpu_secs * 1e3), median(|it| it.megabytes));
        let rates: Option<Vec<f64>> = spans.map(|spans| taken.iter().map(|it| spans as f64 / it.cpu_secs.max(0.01) / 1e3).collect());
        let rate = rates.map(|rates| timing::median(&rates));
        let rate = rate.map(|rate| format!("   {:7.0} k spans/s/core [{:.0}, {:.0}]", rate.value, rate.low, rate.high)).unwrap_or_default();
        println!(
            "  {name:34} {:8.0} ms [{:.0}, {:.0}]   CPU {:6.0} ms [{:.0}, {:.0}]   {:5.0} MB{rate}",
            wall.value, wall.low, wall.high, cpu.value, cpu.low, cpu.high, memory.value
        );
    }
    Ok(())
}

/// A command from its start to its end.
fn watched(argv: &[&str], env: &[(&str, &str)]) -> Result<Taken> {
    let before = timing::children_cpu_secs()?;
    let start = Instant::now();
    let mut child = start_quietly(argv, env)?;
    let mut megabytes = 0.0;
    let status = loop {
        megabytes = timing::peak_megabytes(child.id()).unwrap_or(megabytes);
        if let Some(status) = child.try_wait().context("failed to wait")? {
            break status;
        }
        std::thread::park_timeout(LOOK);
    };
    ensure!(status.success(), "{} ended with {status}", argv.join(" "));
    Ok(Taken { wall_secs: start.elapsed().as_secs_f64(), cpu_secs: timing::children_cpu_secs()? - before, megabytes })
}

/// A command that serves a page, from its start until somebody can connect to it.
fn served(argv: &[&str], env: &[(&str, &str)]) -> Result<Taken> {
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("failed to find a free port")?;
    let port = address.port().to_string();
    let start = Instant::now();
    let mut child = start_quietly(&[argv, &["--port", &port]].concat(), env)?;
    while TcpStream::connect(address).is_err() {
        if let Some(status) = child.try_wait().context("failed to wait")? {
            bail!("{} ended with {status} before it served anything", argv.join(" "));
        }
        std::thread::park_timeout(LOOK);
    }
    let wall_secs = start.elapsed().as_secs_f64();
    let megabytes = timing::peak_megabytes(child.id());
    let cpu_secs = timing::cpu_secs_of(child.id());
    // Like Ctrl-C, so that it removes its files.
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().context("failed to interrupt it")?;
    child.wait().context("failed to wait")?;
    Ok(Taken { wall_secs, cpu_secs: cpu_secs?, megabytes: megabytes.context("failed to read its memory")? })
}

fn start_quietly(argv: &[&str], env: &[(&str, &str)]) -> Result<Child> {
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).envs(env.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("failed to start {}", argv[0]))
}
