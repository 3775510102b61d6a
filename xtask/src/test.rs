//! The README's second command: everything that a change must pass, and at the end the list of skipped tests with reasons.

use std::path::Path;

use anyhow::{Context, Result};

use crate::command::{run, run_in};
use crate::paths::{root, target_dir};
use crate::watched::run_tests;
use crate::{commits, deny, need, pulumi, tidy, web};

/// Format, house rules, lints, rustdoc, dependencies, the page, Rust tests with the replay of fuzz targets, stories, and the story in a real browser.
/// Generated files have tests that compare them with their sources.
pub(crate) fn test() -> Result<()> {
    test_all(Lints::WithoutSql)
}

/// What is linted and documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lints {
    All,
    /// Without the query engine, whose dependencies would be compiled a second time for it, and are most of what lints take in a cold build.
    WithoutSql,
}

impl Lints {
    fn scope(self) -> &'static [&'static str] {
        match self {
            Lints::All => &["--workspace"],
            Lints::WithoutSql => {
                &["--workspace", "--exclude", "longpole-query", "--no-default-features", "--features", "longpole-fuzz-targets/default"]
            }
        }
    }
}

fn test_all(lints: Lints) -> Result<()> {
    without_running(lints)?;
    let skips = target_dir().join("skipped-tests.txt");
    std::fs::create_dir_all(target_dir()).context("failed to make the target folder")?;
    let rates = target_dir().join("pass-rates.tsv");
    for list in [&skips, &rates] {
        std::fs::write(list, "").with_context(|| format!("failed to write {}", list.display()))?;
    }

    if lints == Lints::WithoutSql {
        skip(&skips, "lints and rustdoc of SQL", "cargo xtask check has them")?;
    }
    web::check()?;
    web::build()?;
    if let Err(why) = need::setpriv() {
        skip(&skips, "stories of a plain user", &why)?;
    }
    if let Err(why) = need::musl() {
        skip(&skips, "a program of musl", &why)?;
    }
    if let Err(why) = need::perf() {
        skip(&skips, "stories of perf.data", &format!("no perf: {why}"))?;
    }
    deny::deny(|what, why| skip(&skips, what, why))?;
    let target = target_dir();
    let needs = [
        ("find the long pole in the browser", "LONGPOLE_CHROMIUM", need::chromium()),
        ("the stock Python SDK", "LONGPOLE_PYTHON", need::python(&target)),
        ("the stock Node SDK", "LONGPOLE_NODE_SDK", need::node_sdk(&target)),
        ("the stock Java SDK", "LONGPOLE_JAVA_SDK", need::java_sdk(&target)),
        ("the stock Go SDK", "LONGPOLE_GO_SDK", need::go_sdk(&target)),
        ("the Firefox Profiler and speedscope", "LONGPOLE_VIEWERS", need::viewers(&target)),
        ("deploy with Pulumi", "LONGPOLE_PULUMI", pulumi::pulumi().map_err(|error| format!("{error:#}"))),
    ];
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let mut env = vec![("LONGPOLE_SKIPPED_TESTS", name(&skips)), ("LONGPOLE_PASS_RATES", name(&rates))];
    for (what, variable, found) in needs {
        match found {
            Ok(path) => env.push((variable, path.to_string_lossy().into_owned())),
            Err(why) => skip(&skips, what, &why)?,
        }
    }
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    // Under nohup, or a CI that ignores signals, the tests would inherit ignored signals, and stories send them.
    let test = ["--default-signal", "cargo", "test", "--workspace", "--no-fail-fast"];
    match need::default_signals() {
        true => run_tests(&root(), "env", &test, &env)?,
        false => run_tests(&root(), "cargo", &test[2..], &env)?,
    }
    report_rates(&rates)?;
    report_skips(&skips)
}

/// [`test()`] with all lints, and warnings about the messages of commits. `quick` leaves out what has to be linked and run.
pub(crate) fn check(quick: bool) -> Result<()> {
    commits::warn()?;
    if quick { without_running(Lints::All) } else { test_all(Lints::All) }
}

/// Format, house rules, lints and rustdoc. Lints and rustdoc share the metadata of dependencies, which costs a cold build some minutes.
fn without_running(lints: Lints) -> Result<()> {
    run("cargo", &["fmt", "--all", "--check"])?;
    tidy::report()?;
    let with_scope = |before: &[&'static str], after: &[&'static str]| [before, lints.scope(), after].concat();
    run("cargo", &with_scope(&["clippy"], &["--all-targets", "--", "-D", "warnings"]))?;
    run_in(
        &root(),
        "cargo",
        &with_scope(&["doc"], &["--no-deps", "--document-private-items"]),
        &[("RUSTDOCFLAGS", "-D warnings -A rustdoc::private_intra_doc_links")],
    )
}

fn skip(list: &Path, what: &str, why: &str) -> Result<()> {
    use std::io::Write;
    let mut file = std::fs::OpenOptions::new().append(true).open(list).context("failed to open the list of skipped tests")?;
    writeln!(file, "{what}: {why}").context("failed to note a skipped test")
}

/// Prints the timing trials that failed at least once; `longpole-testing` documents the file.
fn report_rates(list: &Path) -> Result<()> {
    let text = std::fs::read_to_string(list).context("failed to read the list of pass rates")?;
    let trials: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let failed: Vec<_> = trials.iter().filter(|trial| trial.get(1) != trial.get(2)).collect();
    eprintln!("\nxtask: {} of {} timing trials held each time", trials.len() - failed.len(), trials.len());
    for trial in failed {
        if let [name, held, made, ..] = trial[..] {
            eprintln!("  {name}: {held} of {made}");
        }
    }
    Ok(())
}

fn report_skips(list: &Path) -> Result<()> {
    let text = std::fs::read_to_string(list).context("failed to read the list of skipped tests")?;
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.dedup();
    if lines.is_empty() {
        eprintln!("\nxtask: nothing was skipped");
    } else {
        eprintln!("\nxtask: skipped {}:", lines.len());
        for line in lines {
            eprintln!("  {line}");
        }
    }
    Ok(())
}
