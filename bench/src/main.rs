//! The measured claims, each beside its peers in the same run: `cargo xtask bench [startup|overhead|answer|context|states|flame|import]`.
//!
//! Every figure is a median of interleaved rounds, printed as a ratio to the plain program with the interval that holds the
//! true median with 95 % confidence (order statistics). A peer that is not installed is said to be missing.

#![allow(clippy::print_stdout, reason = "a program that prints its figures")]

mod answer;
mod context;
mod flame;
mod generate;
mod import;
mod load;
mod overhead;
mod peers;
mod startup;
mod states;
mod timing;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["load", kind, amount] => load::run(kind, amount.parse()?),
        ["startup", longpole] => startup::measure(longpole),
        ["overhead", longpole] => overhead::measure(longpole),
        ["answer", longpole] => answer::measure(longpole),
        ["context"] => context::measure(),
        ["states"] => states::measure(),
        ["flame"] => flame::measure(),
        ["import", longpole] => import::measure(longpole),
        ["gen", arguments @ ..] => generate::generate(arguments),
        _ => bail!("usage: longpole-bench startup|overhead|answer|import LONGPOLE, or context, or states, or flame, or gen --spans N …"),
    }
}
