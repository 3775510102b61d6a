//! What other profilers say first of the same programs: perf and py-spy the function with the most samples of its own, Coz the line
//! whose speed-up would shorten the program most.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::programs::{Folders, PROGRAMS, Program, Row};
use crate::{peers, timing};

/// Runs for Coz, which tries one line at one speed-up in each.
const COZ_RUNS: usize = 40;

/// Prints what the profilers that are installed say first of all programs, or of those with one of these words in their name.
pub(crate) fn measure(words: &[&str]) -> Result<()> {
    let folders = Folders::new()?;
    let [perf, py_spy, coz] = ["perf", "py-spy", "coz"].map(peers::find);
    println!("| program | perf | py-spy | py-spy --idle | Coz |\n|---|---|---|---|---|");
    let mut named = [[0, 0]; 4];
    for program in PROGRAMS.iter().filter(|program| program.is_chosen(words)) {
        let row = Row::new(program, &folders)?;
        row.prepare()?;
        let is_python = program.language == "Python";
        let cells = [
            perf.as_ref().map(|perf| of_perf(perf, &row)),
            py_spy.as_ref().filter(|_| is_python).map(|py_spy| of_py_spy(py_spy, &row, &[])),
            py_spy.as_ref().filter(|_| is_python).map(|py_spy| of_py_spy(py_spy, &row, &["--idle"])),
            coz.as_ref().and_then(|coz| Some(of_coz(coz, &row, coz_source(program)?))),
        ];
        let texts = cells.iter().zip(&mut named).map(|(cell, [right, all])| {
            let Some(cell) = cell else { return String::new() };
            *all += 1;
            match cell {
                Ok(text) => {
                    *right += usize::from(program.is_named_in(text));
                    format!("`{text}`, {}", if program.is_named_in(text) { "yes" } else { "**no**" })
                }
                Err(error) => format!("not measured: {error:#}"),
            }
        });
        println!("| {} | {} |", program.name, texts.collect::<Vec<_>>().join(" | "));
    }
    let counts: Vec<String> = named.iter().map(|[right, all]| format!("{right} of {all}")).collect();
    println!("| named right | {} |", counts.join(" | "));
    Ok(())
}

/// The program and function with the most samples: the first line of `perf report --no-children`.
fn of_perf(perf: &str, row: &Row<'_>) -> Result<String> {
    let data = row.folder.join("perf.data").to_string_lossy().into_owned();
    let words = row.words()?;
    let record = ["record", "-q", "-F", "999", "-g", "-o", &data, "--"];
    let args: Vec<&str> = record.into_iter().chain(words.iter().map(String::as_str)).collect();
    run(row, perf, &args)?;
    let report = ["report", "-q", "--stdio", "--no-children", "-g", "none", "-F", "overhead,comm,sym", "-i", &data];
    let text = run(row, perf, &report)?;
    let first = text.lines().find(|line| !line.trim().is_empty()).context("no samples")?;
    Ok(first.split_whitespace().skip(1).filter(|word| !word.starts_with('[')).collect::<Vec<_>>().join(" "))
}

/// The function with the most samples of its own.
fn of_py_spy(py_spy: &str, row: &Row<'_>, options: &[&str]) -> Result<String> {
    let raw = row.folder.join("stacks");
    std::fs::remove_file(&raw).ok();
    let words = row.words()?;
    let raw_text = raw.to_string_lossy();
    let record = ["record", "--subprocesses", "--function", "-r", "200", "-f", "raw", "-o", &raw_text];
    let args: Vec<&str> = record.into_iter().chain(options.iter().copied()).chain(["--"]).chain(words.iter().map(String::as_str)).collect();
    run(row, py_spy, &args)?;
    let text = std::fs::read_to_string(&raw).context("py-spy wrote no stacks")?;
    let mut samples: HashMap<&str, u64> = HashMap::new();
    for (stack, count) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
        *samples.entry(stack.rsplit(';').next().unwrap_or_default()).or_default() += count.parse::<u64>().unwrap_or_default();
    }
    let best = samples.into_iter().max_by_key(|&(name, count)| (count, name)).context("no samples")?;
    Ok(best.0.to_owned())
}

/// How to build a program for Coz 0.2.2, which reads DWARF 4: its source and a shell command that makes `coz-program`.
fn coz_source(program: &Program) -> Option<(&'static str, &'static str)> {
    match program.name {
        "C++: a comparison that copies" => Some(("sorter.cpp", "g++ -O2 -gdwarf-4 -gno-variable-location-views -o coz-program sorter.cpp")),
        "Rust: a list searched for each word" => Some(("index.rs", "rustc -O -g -C dwarf-version=4 -o coz-program index.rs")),
        "Rust: a slow producer" => Some(("workers.rs", "rustc -O -g -C dwarf-version=4 -o coz-program workers.rs")),
        _ => None,
    }
}

/// The function of the line that Coz predicts to shorten the program most.
fn of_coz(coz: &str, row: &Row<'_>, (source, build): (&str, &str)) -> Result<String> {
    let path = row.folder.join(source);
    run(row, "sh", &["-c", &format!("cp $PROGRAMS/{source} . && {build}")])?;
    let profile = row.folder.join("profile.coz").to_string_lossy().into_owned();
    let scope = format!("%/{source}");
    for _ in 0..COZ_RUNS {
        run(row, coz, &["run", "-s", &scope, "-o", &profile, "--end-to-end", "---", "./coz-program"])?;
    }
    let experiments = experiments(&std::fs::read_to_string(&profile).context("Coz wrote no profile")?);
    let (line, saving) = best_line(&experiments).context("Coz tried no line twice")?;
    let number: usize = line.rsplit(':').next().and_then(|number| number.parse().ok()).context("a line without a number")?;
    let function = function_at(&path, number)?;
    Ok(format!("{function} (line {number}, {saving:.2} s)"))
}

struct Experiment {
    line: String,
    speedup: f64,
    seconds: f64,
}

/// The experiments of a profile: lines of fields `name=value`.
fn experiments(profile: &str) -> Vec<Experiment> {
    let field = |line: &str, name: &str| line.split('\t').find_map(|field| field.strip_prefix(name).map(str::to_owned));
    profile
        .lines()
        .filter(|line| line.starts_with("experiment"))
        .filter_map(|line| {
            Some(Experiment {
                line: field(line, "selected=")?,
                speedup: field(line, "speedup=")?.parse().ok()?,
                seconds: field(line, "duration=")?.parse::<f64>().ok()? / 1e9,
            })
        })
        .collect()
}

/// The line with the largest saving if it took no time: the slope of the saving over the speed-up, of all experiments with it.
fn best_line(experiments: &[Experiment]) -> Option<(&str, f64)> {
    let whole: Vec<f64> = experiments.iter().filter(|one| one.speedup == 0.0).map(|one| one.seconds).collect();
    if whole.is_empty() {
        return None;
    }
    let whole = timing::median(&whole).value;
    let mut sums: HashMap<&str, (f64, f64, usize)> = HashMap::new();
    for one in experiments.iter().filter(|one| one.speedup > 0.0) {
        let (products, squares, count) = sums.entry(&one.line).or_default();
        *products += one.speedup * (whole - one.seconds);
        *squares += one.speedup * one.speedup;
        *count += 1;
    }
    let slopes = sums.into_iter().filter(|(_, (_, _, count))| *count > 1).map(|(line, (products, squares, _))| (line, products / squares));
    slopes.max_by(|a, b| a.1.total_cmp(&b.1))
}

/// The name of the function around a line: of the last line above it that declares one.
fn function_at(source: &Path, number: usize) -> Result<String> {
    let text = std::fs::read_to_string(source)?;
    let declared = |line: &&str| {
        line.trim_start().starts_with("fn ") || (line.starts_with(|c: char| c.is_alphabetic() || c == '_') && line.contains('('))
    };
    let line = text.lines().take(number).filter(declared).last().context("no function above the line")?;
    let head = line.split('(').next().unwrap_or_default();
    let head =
        if line.contains("__attribute__") { line.split(')').nth(2).and_then(|rest| rest.split('(').next()).unwrap_or(head) } else { head };
    Ok(head.split_whitespace().last().unwrap_or_default().trim_start_matches('*').to_owned())
}

/// Runs a command in the folder of a program and returns its output.
fn run(row: &Row<'_>, program: &str, args: &[&str]) -> Result<String> {
    let out = row.command(program, args, false).output().with_context(|| format!("failed to start {program}"))?;
    let error = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{program} ended with {}: {}", out.status, error.lines().last().unwrap_or_default());
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}
