//! Views as text: tables and answers. Nothing here reads a store or prints.

pub(crate) mod answer;
pub(crate) mod command;
pub(crate) mod diff;
pub(crate) mod flame;
pub(crate) mod flame_svg;
mod folded_calls;
pub(crate) mod frame;
pub(crate) mod functions;
pub(crate) mod growth;
mod next_steps;
pub(crate) mod poles;
pub(crate) mod processes;
pub(crate) mod profile;
pub(crate) mod quality;
pub(crate) mod recordings;
mod service;
pub(crate) mod shared_poles;
pub(crate) mod source;
pub(crate) mod span;
pub(crate) mod spans;
mod states;
pub(crate) mod threads;
pub(crate) mod top;
pub(crate) mod traces;
pub(crate) mod tree;
mod waits;
pub(crate) mod what_if;

#[cfg(test)]
mod tests;

use crate::terminal::screen::Screen;

/// Width of the label in front of a line.
const LABEL_WIDTH: usize = 10;

fn line(out: &mut Screen, text: &str) {
    out.line(text.trim_end());
}
