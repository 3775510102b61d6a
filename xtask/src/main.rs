//! The tasks of this repository, in one tool that is always there: `cargo xtask TASK`.
//!
//! Each step prints the plain command it runs, so nobody depends on the runner.

#![forbid(unsafe_code)]

mod attack;
mod bench;
mod command;
mod commits;
mod compare;
mod demo;
mod deny;
mod dist;
mod need;
mod paths;
mod peers;
mod pictures;
mod pulumi;
mod sanitize;
mod test;
mod tidy;
mod watched;
mod web;

use std::process::ExitCode;

const HELP: &str = "cargo xtask TASK

  demo            build longpole and its example, record the example, print what to fix first
  test            everything a change must pass: format, tidy, lints, rustdoc, dependencies, tests, fuzz targets, stories, browser;
                  ends with the skipped tests and their reasons
  check [--quick] `test`, and warnings about commit messages; --quick: only what needs no linking
  attack [NAME] [--binary PATH]  try the attacks of SECURITY.md, as root and as a plain user, under two umasks, with and without HOME
  sanitize        run the files with unsafe code under AddressSanitizer and, where installed, Miri
  tidy            the house rules: arrows, circles, file lengths, names, unsafe files, links, plain English
  web             build the page into web/dist
  bench [NAME…] [--before LONGPOLE]  measure the published figures, beside peers or an earlier longpole in the same run
  compare BEFORE AFTER [FOLDER…]  ask two builds of longpole for every fixture, and every recording in the folders, and list the answers that differ
  peers [NAME…]   install the peers that benchmarks compare with and stories run
  pictures        draw the README's two pictures from a real run
  dist            build the binary for release, with the page inside";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["demo"] => demo::demo(),
        ["test"] => test::test(),
        ["check", rest @ ..] => test::check(rest == ["--quick"]),
        ["attack", rest @ ..] => attack::attack(rest),
        ["sanitize"] => sanitize::sanitize(),
        ["tidy"] => tidy::report(),
        ["web"] => web::build(),
        ["bench", names @ ..] => bench::bench(names),
        ["compare", before, after, folders @ ..] => compare::compare(before, after, folders),
        ["peers", names @ ..] => peers::peers(names),
        ["pictures"] => pictures::pictures(),
        ["dist"] => dist::dist(),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
