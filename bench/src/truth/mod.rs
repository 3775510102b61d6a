//! Whether the first line of the answer is true: programs whose bottleneck is known, and what the answer says of them.
//!
//! `truth synthetic` generates random programs of threads, locks, queues, pipes and children, in C and Python. How much earlier each ends
//! without one of its functions is known by construction. The name is right if the first pole names a function whose removal gains
//! nearly as much as that of any other. The saving is right if the promised range, no wider than half of itself, holds the gain, or
//! misses it by less than 15 %.
//!
//! `truth programs` does the same with the programs of [`programs`], where the gain is that of a second run without the bottleneck.
//! `truth peers` asks other profilers for the same programs.

pub(crate) mod beside;
mod c;
mod plan;
pub(crate) mod programs;
mod python;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::Subject;
use plan::{Language, Plan};

/// What a measurement of these programs cannot tell apart, in milliseconds.
const NOISE_MILLIS: f64 = 20.0;

/// What the first pole of an answer says.
struct FirstPole {
    /// Where a name of a function may stand, the best place first.
    texts: Vec<String>,
    /// The range of what it saves, in milliseconds.
    saves: [f64; 2],
}

impl FirstPole {
    fn new(answer: &Value) -> Option<FirstPole> {
        let pole = answer["poles"].get(0)?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let texts = [&pole["part"]["function"], &pole["reason"]["function"], &pole["reason"]["text"], &pole["part"]["text"], &pole["name"]];
        let saves = [0, 1].map(|end| pole["saves_own_nanos"][end].as_f64().unwrap_or_default() / 1e6);
        Some(FirstPole { texts: texts.into_iter().filter_map(text).collect(), saves })
    }

    /// The first of these names in its texts.
    fn named(&self, plan: &Plan) -> Option<usize> {
        self.texts.iter().find_map(|text| {
            let places = plan.functions.iter().enumerate().filter_map(|(function, known)| Some((text.find(&known.name)?, function)));
            places.min().map(|(_, function)| function)
        })
    }
}

/// Whether a promise holds: a range no wider than half of itself with the gain in it, or less than 15 % from it.
fn is_in_range([low, high]: [f64; 2], gain: f64) -> bool {
    let slack = (gain * 0.15).max(NOISE_MILLIS);
    high - low <= (high / 2.0).max(NOISE_MILLIS) && low - slack <= gain && gain <= high + slack
}

/// Rows so far.
#[derive(Default)]
struct Counts {
    programs: usize,
    named: usize,
    beside: usize,
    saving: usize,
}

/// Where things stay.
pub(crate) struct Folders<'a> {
    /// Programs and answers that are wrong.
    pub(crate) keep: Option<&'a Path>,
    /// All recordings: one that is there already is judged again, so that two answers of one recording can be compared.
    pub(crate) again: Option<&'a Path>,
}

/// Records random programs, prints each whose first line is not right, and how many are.
pub(crate) fn synthetic(subject: &Subject, count: u64, first_seed: u64, Folders { keep, again }: &Folders<'_>) -> Result<()> {
    let temporary = std::env::temp_dir().join(format!("longpole-bench-truth-{}", std::process::id()));
    let folder = again.map_or(temporary, Path::to_path_buf);
    std::fs::create_dir_all(&folder).context("failed to make a temporary folder")?;
    let mut counts = Counts::default();
    for seed in first_seed..first_seed + count {
        let plan = Plan::random(seed);
        let program = write(&plan, seed, &folder)?;
        let name = again.map(|_| format!("seed{seed}"));
        let answer = match name.filter(|name| folder.join(name).exists()) {
            Some(name) => answer_again(subject, &folder, &std::fs::read_to_string(folder.join(name))?)?,
            None => record(Command::new(&subject.binary), &program, &folder)?,
        };
        if again.is_some() {
            std::fs::write(folder.join(format!("seed{seed}")), answer["recording"].as_str().context("no handle")?)?;
        }
        let is_right = print_row(seed, &plan, &answer, &mut counts);
        if let Some(keep) = keep.filter(|_| !is_right) {
            keep_row(keep, seed, &plan, &program, &answer)?;
        }
        if counts.programs.is_multiple_of(50) {
            print_counts(&counts);
        }
    }
    print_counts(&counts);
    if again.is_none() {
        std::fs::remove_dir_all(&folder).ok();
    }
    Ok(())
}

/// The answer for a recording that is there.
fn answer_again(subject: &Subject, folder: &Path, handle: &str) -> Result<Value> {
    let out = Command::new(&subject.binary).arg("--store").arg(folder.join("store")).args(["show", handle, "--format", "json"]).output()?;
    ensure!(out.status.success(), "{handle}: {}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).context("the answer is no JSON")
}

/// Writes a program, and compiles it where that is needed; its command.
fn write(plan: &Plan, seed: u64, folder: &Path) -> Result<Vec<String>> {
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    match plan.language {
        Language::Python => {
            let path = folder.join(format!("program{seed}.py"));
            std::fs::write(&path, python::source(plan))?;
            // Without what the machine's packages run at each start, which no plan knows.
            Ok(vec![interpreter()?, "-S".to_owned(), text(path)])
        }
        Language::C => {
            let (path, program) = (folder.join(format!("program{seed}.c")), folder.join(format!("program{seed}")));
            std::fs::write(&path, c::source(plan))?;
            let out =
                Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).args([&program, &path]).output().context("failed to start cc")?;
            ensure!(out.status.success(), "cc failed: {}", String::from_utf8_lossy(&out.stderr));
            Ok(vec![text(program)])
        }
    }
}

/// Python itself: `python3` may be a script that looks for it.
fn interpreter() -> Result<String> {
    let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().context("failed to start python3")?;
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Records a program and reads the answer. `longpole` is the command without arguments.
fn record(mut longpole: Command, program: &[String], folder: &Path) -> Result<Value> {
    let (store, summary) = (folder.join("store"), folder.join("summary.json"));
    let out = longpole
        .arg("--store")
        .arg(&store)
        .args(["run", "--summary-format", "json", "--summary"])
        .arg(&summary)
        .arg("--")
        .args(program)
        .stdin(Stdio::null())
        .output()
        .context("failed to start longpole")?;
    ensure!(out.status.success(), "{program:?} ended with {}: {}", out.status, String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&std::fs::read(&summary)?).context("the answer is no JSON")
}

/// Prints a row if it is wrong; returns whether it is right.
fn print_row(seed: u64, plan: &Plan, answer: &Value, counts: &mut Counts) -> bool {
    counts.programs += 1;
    let wall = answer["wall_nanos"].as_f64().unwrap_or_default() / 1e6;
    let gains: Vec<f64> = (0..plan.functions.len()).map(|function| plan.gain_millis(function) as f64).collect();
    let best = gains.iter().copied().fold(0.0, f64::max);
    let best_name = gains.iter().position(|&gain| gain >= best).map_or("nothing", |function| plan.functions[function].name.as_str());
    let head = format!("{seed:4} {:?} {wall:.0} of {} ms:", plan.language, plan.millis_without(None));
    let Some(pole) = FirstPole::new(answer) else {
        println!("{head} WRONG no pole, {best_name} gains {best:.0} ms");
        return false;
    };
    let [low, high] = pole.saves;
    let Some(function) = pole.named(plan) else {
        println!("{head} WRONG {:?} saves {low:.0}–{high:.0}, {best_name} gains {best:.0} ms", pole.texts.first());
        return false;
    };
    let (name, gain) = (&plan.functions[function].name, gains[function]);
    let is_named = gain >= best * 0.9 || gain + NOISE_MILLIS >= best;
    let is_beside = !is_named && gain < NOISE_MILLIS;
    let is_promised = is_in_range(pole.saves, gain);
    counts.named += usize::from(is_named);
    counts.beside += usize::from(is_beside);
    counts.saving += usize::from(is_promised);
    if !(is_named && is_promised) {
        let said = match (is_named, is_beside) {
            (_, true) => "NOT ON THE PATH ",
            (false, _) => "WRONG NAME ",
            (true, false) => "",
        };
        let saving = if is_promised { "" } else { "WRONG SAVING " };
        println!("{head} {said}{saving}{name} gains {gain:.0}, saves {low:.0}–{high:.0}; {best_name} gains {best:.0}");
    }
    is_named && is_promised
}

fn print_counts(Counts { programs, named, beside, saving }: &Counts) {
    let share = |count: &usize| *count as f64 * 100.0 / (*programs).max(1) as f64;
    println!(
        "{programs} programs: named right {:.1} %, named what is not on the path {:.1} %, saving in range {:.1} %",
        share(named),
        share(beside),
        share(saving)
    );
}

fn keep_answer(keep: &Path, name: &str, answer: &Value) -> Result<()> {
    std::fs::create_dir_all(keep).with_context(|| format!("failed to make {}", keep.display()))?;
    std::fs::write(keep.join(format!("{name}.json")), serde_json::to_vec_pretty(answer)?).context("failed to write the answer")
}

/// Keeps the program, its plan and the answer of a wrong row.
fn keep_row(keep: &Path, seed: u64, plan: &Plan, program: &[String], answer: &Value) -> Result<()> {
    keep_answer(keep, &seed.to_string(), answer)?;
    std::fs::write(keep.join(format!("{seed}.plan")), format!("{plan:#?}\n"))?;
    let Some(last) = program.last() else { bail!("a program without a command") };
    std::fs::copy(last, keep.join(Path::new(last).file_name().context("a program without a name")?))?;
    let source = Path::new(last).with_extension("c");
    if source.exists() {
        std::fs::copy(&source, keep.join(format!("program{seed}.c")))?;
    }
    Ok(())
}
