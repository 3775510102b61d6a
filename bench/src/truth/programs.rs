//! Programs that others wrote, or that are written as people write them, each with a way to really remove its bottleneck.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{FirstPole, NOISE_MILLIS, interpreter, is_in_range, keep_answer, record};
use crate::{Subject, timing};

/// Rounds of three runs: recorded, and without longpole with and without the bottleneck.
const ROUNDS: usize = 5;

/// Sets this for the runs without the bottleneck.
const FIX: &str = "FIX";

/// A program, run in a folder of its own.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) language: &'static str,
    /// Prepares the folder, in a shell: `PROGRAMS` is the folder of the sources, `DATA` a folder with files to work on.
    setup: &'static str,
    /// Words of the command; `python` is the interpreter itself. What needs a shell begins with `sh -c`.
    command: &'static [&'static str],
    /// Names that the first pole may have: the function to mend, or the program where it has no functions.
    named: &'static [&'static str],
    /// Whether the second run has nothing left of what the first pole names, so that its saving can be compared: a process that is one pole,
    /// because its functions have no names, may do something else as well.
    is_gone: bool,
}

const fn program(
    name: &'static str,
    language: &'static str,
    setup: &'static str,
    command: &'static [&'static str],
    named: &'static [&'static str],
) -> Program {
    Program { name, language, setup, command, named, is_gone: true }
}

impl Program {
    /// The same where a part of the bottleneck is left.
    const fn partly(self) -> Program {
        Program { is_gone: false, ..self }
    }

    /// Its name as that of a file.
    fn file_name(&self) -> String {
        self.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
    }

    /// Whether a text names the bottleneck.
    pub(super) fn is_named_in(&self, text: &str) -> bool {
        self.named.iter().any(|name| text.contains(name))
    }

    /// Whether one of these words stands in its name, or there are none.
    pub(super) fn is_chosen(&self, words: &[&str]) -> bool {
        words.is_empty() || words.iter().any(|word| self.name.contains(word))
    }
}

pub(super) const PROGRAMS: [Program; 33] = [
    program(
        "pytest: a slow fixture",
        "Python",
        "cp $PROGRAMS/suite_test.py .",
        &["python", "-m", "pytest", "-q", "suite_test.py"],
        &["start_database"],
    ),
    program("SQLite: a commit for each row", "Python", "", &["python", "commits.py"], &["insert_rows"]),
    program("multiprocessing: a straggler", "Python", "", &["python", "straggler.py"], &["resize_panorama", "burn"]),
    program("threads: a slow fetch", "Python", "", &["python", "fetches.py"], &["fetch_archive"]),
    program("asyncio: a slow task", "Python", "", &["python", "tasks.py"], &["ask_ledger"]),
    program("re: an expression that backtracks", "Python", "", &["python", "validate.py"], &["validate"]),
    program("a lock held while waiting", "Python", "", &["python", "lock.py"], &["flush_to_disk"]),
    program("Flask: a slow query", "Python", "", &["python", "service.py"], &["query_stock"]),
    program(
        "networkx: betweenness of all nodes",
        "Python",
        "",
        &["python", "graph.py"],
        &["betweenness", "_single_source_shortest_path_basic", "_accumulate"],
    ).partly(),
    program("Node: pbkdf2 in the main thread", "JavaScript", "", &["node", "password.js"], &["hashPassword", "pbkdf2"]),
    program("Node: a comparison that parses", "JavaScript", "", &["node", "parse.js"], &["compareDates", "sortRows"]).partly(),
    program("Node: a slow upstream", "JavaScript", "", &["node", "upstream.js"], &["askUpstream"]).partly(),
    program(
        "node --test: a slow file",
        "JavaScript",
        "cp $PROGRAMS/*.test.js .",
        &["node", "--test"],
        &["retryUntilReady", "slow.test.js"],
    ),
    program("Java: a lock held while waiting", "Java", "javac -d . $PROGRAMS/Orders.java", &["java", "Orders"], &["callBank"]),
    program("Java: a text that grows by copying", "Java", "javac -d . $PROGRAMS/Report.java", &["java", "Report"], &["appendRows"]),
    program(
        "Go: a lock held while waiting",
        "Go",
        "cp $PROGRAMS/orders.go . && go build -o orders orders.go",
        &["./orders"],
        &["callBank"],
    ),
    program("Go: too many rounds", "Go", "cp $PROGRAMS/hash.go . && go build -o hash hash.go", &["./hash"], &["stretchKey"]),
    program(
        "go test: a slow test",
        "Go",
        "cp $PROGRAMS/lib_test.go . && printf 'module lib\\n\\ngo 1.22\\n' > go.mod && go vet . && go test -c -o lib.test .",
        &["./lib.test"],
        &["waitForBroker"],
    ),
    program("Rust: a list searched for each word", "Rust", "rustc -O -g -o index $PROGRAMS/index.rs", &["./index"], &["count_in_list"]),
    program("Rust: a slow producer", "Rust", "rustc -O -g -o workers $PROGRAMS/workers.rs", &["./workers"], &["read_block"]),
    program(
        "cargo build: a slow build script",
        "Rust",
        "mkdir -p src && echo 'fn main() {}' > src/main.rs && cp $PROGRAMS/build.rs . && printf '[package]\\nname = \"p\"\\nversion = \"0.1.0\"\\nedition = \"2024\"\\n[workspace]\\n' > Cargo.toml",
        &["sh", "-c", "rm -rf target; exec cargo build --offline -q --target-dir target"],
        &["build-script", "build_script", "build.rs"],
    ),
    program("C++: a comparison that copies", "C++", "g++ -O2 -g -o sorter $PROGRAMS/sorter.cpp", &["./sorter"], &["copies", "sort_names"]).partly(),
    program(
        "make: a large source",
        "C",
        "cp $PROGRAMS/Makefile . && for i in a b c small; do echo \"int f_$i(int x) { return x + 1; }\" > $i.c; done && i=0 && while [ $i -lt 2500 ]; do echo \"int g_$i(int x) { int s = 0; for (int i = 0; i < x; i++) s += i * $i % 7; return s; }\"; i=$((i+1)); done > large.c",
        &["sh", "-c", "rm -f *.o; exec make -s -j2"],
        &["cc1", "large"],
    ),
    program(
        "tar and gzip: compression",
        "shell",
        "",
        &["sh", "-c", "tar cf - \"$DATA\" 2>/dev/null | if [ -n \"$FIX\" ]; then cat; else gzip -9; fi > out"],
        &["gzip"],
    ),
    program(
        "xz: compression",
        "C",
        "",
        &["sh", "-c", "if [ -n \"$FIX\" ]; then cat \"$DATA/text\" > out; else head -c 6000000 \"$DATA/text\" | xz -6 > out; fi"],
        &["xz"],
    ),
    program(
        "openssl: rounds of a key",
        "C",
        "",
        &["sh", "-c", "openssl enc -aes-256-cbc -pbkdf2 -iter ${FIX:-3000000} -pass pass:x -in /etc/hostname -out out; ls / > /dev/null"],
        &["openssl"],
    ),
    program(
        "dd: each block to the disk",
        "C",
        "",
        &["sh", "-c", "dd if=/dev/zero of=out bs=4k count=1500 ${FIX:+conv=notrunc} ${FIX:-oflag=dsync} 2>/dev/null; exit 0"],
        &["dd"],
    ),
    program(
        "sqlite3: a transaction for each row",
        "C",
        "rm -f items.db; sqlite3 items.db 'create table t(x)'; i=0; while [ $i -lt 1500 ]; do echo \"insert into t values($i);\"; i=$((i+1)); done > slow.sql; (echo 'begin;'; cat slow.sql; echo 'commit;') > FIX.sql",
        &["sh", "-c", "if [ -n \"$FIX\" ]; then sqlite3 items.db < FIX.sql; else sqlite3 items.db < slow.sql; fi"],
        &["sqlite3"],
    ).partly(),
    program(
        "git repack: a large window",
        "C",
        "git init -q . && cp $PROGRAMS/* . && i=0 && while [ $i -lt 60 ]; do head -c $((400000 + i * 9000)) \"$DATA/text\" > text$i; i=$((i+1)); done && git add -A . && git -c user.name=x -c user.email=x@x commit -qm x",
        &["sh", "-c", "if [ -n \"$FIX\" ]; then ls; else git -c pack.threads=1 repack -adFq --window=250 --depth=250; fi > out"],
        &["git"],
    ).partly(),
    program("bash: a slow step", "shell", "", &["bash", "deploy.sh"], &["sleep"]),
    program(
        "find and xargs: one of four jobs",
        "shell",
        "",
        &["sh", "-c", "if [ -n \"$FIX\" ]; then long=0.2; else long=1.5; fi; printf '%s\\n' 0.2 0.2 $long 0.2 | xargs -P2 -n1 sleep"],
        &["sleep"],
    ),
    program("Perl: a loop", "Perl", "", &["perl", "count.pl"], &["perl", "Perl_", "sum_up"]).partly(),
    program(
        "jq: sorts what it need not",
        "C",
        "",
        &[
            "sh",
            "-c",
            "jq -c \"${FIX:-[.[] | .name] | sort | unique | map(ascii_upcase) | sort | length}\" \"$DATA/items.json\" > out 2>/dev/null; exit 0",
        ],
        &["jq"],
    ).partly(),
];

/// Measures all programs, or those with one of these words in their name; prints the table, and what is missing here.
pub(crate) fn measure(subject: &Subject, words: &[&str], keep: Option<&Path>) -> Result<()> {
    let folders = Folders::new()?;
    println!("| program | language | first pole | right | promised | gained |\n|---|---|---|---|---|---|");
    let (mut measured, mut named, mut promised, mut comparable) = (0, 0, 0, 0);
    for program in PROGRAMS.iter().filter(|program| program.is_chosen(words)) {
        match Row::new(program, &folders)?.measure(subject, keep) {
            Ok(Outcome { is_named, is_promised }) => {
                measured += 1;
                named += usize::from(is_named);
                comparable += usize::from(is_promised.is_some());
                promised += usize::from(is_promised == Some(true));
            }
            Err(error) => println!("| {} | {} | not measured: {error:#} | | | |", program.name, program.language),
        }
    }
    println!("\n{measured} programs: named right {named}, saving in range {promised} of {comparable}");
    Ok(())
}

/// Where the programs run; gone when dropped.
pub(super) struct Folders {
    all: PathBuf,
    data: PathBuf,
    sources: PathBuf,
}

impl Folders {
    pub(super) fn new() -> Result<Folders> {
        let all = std::env::temp_dir().join(format!("longpole-bench-programs-{}", std::process::id()));
        let data = all.join("data");
        std::fs::create_dir_all(&data).context("failed to make a temporary folder")?;
        write_data(&data)?;
        Ok(Folders { all, data, sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("programs") })
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.all).ok();
    }
}

/// Texts and numbers to work on, the same each time.
fn write_data(folder: &Path) -> Result<()> {
    let words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"];
    let mut random = longpole_testing::random::Random(7);
    let mut text = String::new();
    while text.len() < 24_000_000 {
        text.push_str(words[random.below(words.len())]);
        text.push_str(&random.below(1000).to_string());
        text.push(if random.one_in(12) { '\n' } else { ' ' });
    }
    std::fs::write(folder.join("text"), &text)?;
    let items: Vec<Value> =
        (0..60_000).map(|id| serde_json::json!({ "id": id, "name": format!("item {}", random.below(100_000)) })).collect();
    std::fs::write(folder.join("items.json"), serde_json::to_vec(&items)?)?;
    Ok(())
}

struct Outcome {
    is_named: bool,
    is_promised: Option<bool>,
}

pub(super) struct Row<'a> {
    program: &'a Program,
    pub(super) folder: PathBuf,
    folders: &'a Folders,
}

impl<'a> Row<'a> {
    /// A program in its own folder, which has what it needs.
    pub(super) fn new(program: &'a Program, folders: &'a Folders) -> Result<Row<'a>> {
        let folder = folders.all.join(program.file_name());
        std::fs::create_dir_all(&folder)?;
        Ok(Row { program, folder, folders })
    }

    fn measure(&self, subject: &Subject, keep: Option<&Path>) -> Result<Outcome> {
        self.prepare()?;
        let (mut gains, mut answers) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            answers.push(self.record(subject)?);
            gains.push(self.wall_millis(false)? - self.wall_millis(true)?);
        }
        let gain = timing::median(&gains).value;
        let poles = answers.iter().map(|answer| FirstPole::new(answer).context("an answer has no pole")).collect::<Result<Vec<_>>>()?;
        let names = |pole: &FirstPole| pole.texts.iter().any(|text| self.program.is_named_in(text));
        let named = poles.iter().filter(|pole| names(pole)).count();
        let is_named = named == ROUNDS;
        let [low, high] = [0, 1].map(|end| timing::median(&poles.iter().map(|pole| pole.saves[end]).collect::<Vec<_>>()).value);
        let is_promised = self.program.is_gone.then(|| is_in_range([low, high], gain.max(NOISE_MILLIS)));
        // The answer to print is one that is wrong, if there is one.
        let shown = poles.iter().position(|pole| !names(pole)).unwrap_or_default();
        let texts = poles[shown].texts.iter().take(2).cloned().collect::<Vec<_>>().join(", ");
        let right = match named {
            ROUNDS => "yes".to_owned(),
            0 => "**no**".to_owned(),
            _ => format!("**{named} of {ROUNDS}**"),
        };
        let saving = is_promised.map_or("", |is_right| if is_right { ", saving yes" } else { ", saving **no**" });
        println!(
            "| {} | {} | {texts} | {right}{saving} | {:.2}–{:.2} s | {:.2} s |",
            self.program.name,
            self.program.language,
            low / 1e3,
            high / 1e3,
            gain / 1e3
        );
        if let Some(keep) = keep.filter(|_| !is_named || is_promised == Some(false)) {
            keep_answer(keep, &self.program.file_name(), &answers[shown])?;
        }
        Ok(Outcome { is_named, is_promised })
    }

    pub(super) fn prepare(&self) -> Result<()> {
        for entry in self.folders.sources.read_dir().context("no sources")? {
            let path = entry?.path();
            let is_wanted = path.file_name().and_then(|name| name.to_str()).is_some_and(|name| self.program.command.contains(&name));
            if let Some(name) = path.file_name().filter(|_| is_wanted) {
                std::fs::copy(&path, self.folder.join(name))?;
            }
        }
        let out = self.command("sh", &["-c", self.program.setup], false).output().context("failed to start sh")?;
        ensure!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr).lines().last().unwrap_or_default());
        Ok(())
    }

    pub(super) fn command(&self, program: &str, args: &[&str], is_fixed: bool) -> Command {
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(&self.folder)
            .env("PROGRAMS", &self.folders.sources)
            .env("DATA", &self.folders.data)
            .stdin(Stdio::null());
        command.env_remove(FIX);
        if is_fixed {
            command.env(FIX, "1");
        }
        command
    }

    /// The words of the command, with the interpreter in its place.
    pub(super) fn words(&self) -> Result<Vec<String>> {
        let word = |word: &&str| if *word == "python" { interpreter() } else { Ok((*word).to_owned()) };
        self.program.command.iter().map(word).collect()
    }

    fn wall_millis(&self, is_fixed: bool) -> Result<f64> {
        let words = self.words()?;
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let start = Instant::now();
        let out = self.command(&words[0], &args, is_fixed).output().with_context(|| format!("failed to start {}", words[0]))?;
        let wall = start.elapsed();
        ensure!(out.status.success(), "{} ended with {}: {}", words[0], out.status, String::from_utf8_lossy(&out.stderr));
        Ok(wall.as_secs_f64() * 1e3)
    }

    fn record(&self, subject: &Subject) -> Result<Value> {
        record(self.command(&subject.binary, &[], false), &self.words()?, &self.folder)
    }
}
