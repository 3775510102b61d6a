//! The measured claims, each beside its peers in the same run: `cargo xtask bench [startup|overhead|answer|context|states|flame|import|pulumi|serve|truth]`.
//!
//! Every figure is a median of interleaved rounds, printed as a ratio to the plain program with the interval that holds the
//! true median with 95 % confidence (order statistics). It names the peers that are not installed. With `--before PATH` it
//! measures the longpole of an earlier commit in the same rounds, instead of the peers.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod answer;
mod context;
mod flame;
mod generate;
mod import;
mod load;
mod overhead;
mod peers;
mod pulumi;
mod serve;
mod startup;
mod states;
mod timing;
mod truth;

use std::path::Path;

use anyhow::{Context, Result, bail};

/// A longpole under measurement: this tree's, or that of an earlier commit.
#[derive(Debug, Clone)]
struct Subject {
    name: &'static str,
    binary: String,
}

fn main() -> Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut option = |name: &str| args.iter().position(|arg| arg == name).map(|at| args.drain(at..args.len().min(at + 2)).nth(1));
    let before = option("--before").map(|path| path.context("--before needs the longpole of an earlier commit")).transpose()?;
    let keep = option("--keep").map(|path| path.context("--keep needs a folder for the recordings of wrong rows")).transpose()?;
    let again = option("--again").map(|path| path.context("--again needs a folder, which keeps all recordings")).transpose()?;
    let busy = option("--busy")
        .map(|count| count.context("--busy needs a number of threads")?.parse().context("--busy needs a number"))
        .transpose()?;
    load::keep_busy(busy.unwrap_or(0));
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let subjects = |longpole: &str| {
        let before = before.clone().map(|binary| Subject { name: "before", binary });
        [Some(Subject { name: "longpole", binary: longpole.to_owned() }), before].into_iter().flatten().collect::<Vec<_>>()
    };
    match words.as_slice() {
        ["load", kind, amount] => load::run(kind, amount.parse()?),
        ["startup", longpole] => startup::measure(&subjects(longpole)),
        ["overhead", longpole] => overhead::measure(&subjects(longpole)),
        ["answer", longpole] => answer::measure(&subjects(longpole)),
        ["context"] => context::measure(),
        ["states"] => states::measure(),
        ["flame"] => flame::measure(),
        ["serve", longpole, arguments @ ..] => serve::measure(&subjects(longpole), arguments),
        ["import", longpole] => import::measure(&subjects(longpole)),
        ["pulumi", longpole, shapes @ ..] => pulumi::measure(&subjects(longpole), shapes, keep.as_deref().map(Path::new)),
        ["truth", longpole, "synthetic", numbers @ ..] => {
            let number = |at: usize, default| numbers.get(at).map_or(Ok(default), |text| text.parse());
            let folders = truth::Folders { keep: keep.as_deref().map(Path::new), again: again.as_deref().map(Path::new) };
            truth::synthetic(&subjects(longpole)[0], number(0, 500)?, number(1, 1)?, &folders)
        }
        ["truth", longpole, "programs", words @ ..] => {
            truth::programs::measure(&subjects(longpole)[0], words, keep.as_deref().map(Path::new))
        }
        ["truth", _, "peers", words @ ..] => truth::beside::measure(words),
        ["gen", arguments @ ..] => generate::generate(arguments),
        _ => bail!(
            "usage: longpole-bench startup|overhead|answer|import LONGPOLE [--before LONGPOLE], or pulumi LONGPOLE [SHAPE…] [--keep FOLDER], or serve LONGPOLE [--spans N] [--rounds N] [--quick] [--jaeger PATH] [--zipkin JAR] [--large N], or truth LONGPOLE synthetic [COUNT [SEED]] [--again FOLDER]|programs [WORD…] [--keep FOLDER] [--busy THREADS]|peers [WORD…], or context, or states, or flame, or gen --spans N …"
        ),
    }
}
