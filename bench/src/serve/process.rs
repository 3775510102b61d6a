//! A server process: what it costs, and its end.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::client::Client;
use crate::timing;

/// A server that is not there after this long has failed: one with Java needs some seconds.
const START_MAX: Duration = Duration::from_secs(120);

/// How often the start of a server is looked for.
const START_PAUSE: Duration = Duration::from_millis(2);

/// A process that ends with this value.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
}

impl Process {
    /// Starts it; what it says goes into a file.
    pub(super) fn start(argv: &[String], env: &[(&str, String)], said: &Path) -> Result<Process> {
        let out = File::options().create(true).append(true).open(said).with_context(|| format!("failed to make {}", said.display()))?;
        let also = out.try_clone().context("failed to share a file")?;
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).envs(env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(out).stderr(also);
        let child = command.spawn().with_context(|| format!("failed to start {}", argv[0]))?;
        Ok(Process { child })
    }

    /// Seconds until it answers this path with 2xx or 3xx.
    pub(super) fn wait_for(&mut self, start: Instant, port: u16, path: &str) -> Result<f64> {
        loop {
            if let Ok(mut client) = Client::connect(port)
                && let Ok(answer) = client.get(path)
                && (200..400).contains(&answer.status)
            {
                return Ok(start.elapsed().as_secs_f64());
            }
            if let Some(status) = self.child.try_wait().context("failed to wait")? {
                bail!("the server ended with {status}");
            }
            if start.elapsed() > START_MAX {
                bail!("the server did not answer {path} within {} s", START_MAX.as_secs());
            }
            std::thread::park_timeout(START_PAUSE);
        }
    }

    /// CPU time of all its threads, and of its children that ended, in seconds.
    pub(super) fn cpu_secs(&self) -> Result<f64> {
        timing::cpu_secs_with_children_of(self.child.id())
    }

    /// Resident memory in MiB, now and at most.
    pub(super) fn resident_mib(&self) -> Result<(f64, f64)> {
        let read = |file: &str, name: &str| -> Option<f64> {
            let text = fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).ok()?;
            let kibibytes = text.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?.trim();
            Some(kibibytes.parse::<f64>().ok()? / 1024.0)
        };
        let now = read("smaps_rollup", "Rss:").or_else(|| read("status", "VmRSS:")).context("failed to read its memory")?;
        Ok((now, read("status", "VmHWM:").unwrap_or(now)))
    }

    /// Waits until it uses no CPU time: nothing of what it took waits in it. At most this long.
    pub(super) fn settle(&self, at_most: Duration) -> Result<()> {
        const LOOK: Duration = Duration::from_millis(500);
        /// CPU time per look that garbage collectors and timers need.
        const QUIET_SECS: f64 = 0.03;
        let start = Instant::now();
        let (mut before, mut quiet) = (self.cpu_secs()?, 0);
        while quiet < 4 && start.elapsed() < at_most {
            std::thread::park_timeout(LOOK);
            let now = self.cpu_secs()?;
            quiet = if now - before <= QUIET_SECS { quiet + 1 } else { 0 };
            before = now;
        }
        Ok(())
    }

    /// As `kill -9` does.
    pub(super) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("failed to kill a server")?;
        self.child.wait().context("failed to wait for a server")?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Ports that nobody uses now, all different.
pub(super) fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut ports = [0; N];
    let mut held = Vec::new();
    for port in &mut ports {
        let listener = TcpListener::bind("127.0.0.1:0").context("failed to find a free port")?;
        *port = listener.local_addr().context("failed to find a free port")?.port();
        held.push(listener);
    }
    Ok(ports)
}

/// Bytes of all files below a folder, as they are on the disk.
pub(super) fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let mut bytes = 0;
    for entry in entries.flatten() {
        let Ok(about) = entry.metadata() else { continue };
        // Blocks of 512 bytes: Badger's files are larger than what is in them.
        bytes += if about.is_dir() { bytes_below(&entry.path()) } else { (about.blocks() * 512).min(about.len().max(1)) };
    }
    bytes
}
