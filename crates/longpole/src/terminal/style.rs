//! How text looks where it goes: with or without colour, and how wide.

use crate::args::Color;
use crate::env_vars;
use crate::terminal::screen::{self, Look, painted};

/// Columns of a line where nothing says otherwise, as in a file or a pipe, so that output is the same everywhere.
const WIDTH: usize = 100;

/// Narrower tables say nothing any more; a terminal that is narrower wraps them.
const WIDTH_MIN: usize = 72;

/// Longer lines are hard to read; a terminal that is wider is not filled.
const WIDTH_MAX: usize = 140;

/// How text looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    width: usize,
    /// Somebody reads it now.
    terminal: bool,
}

impl Style {
    /// For standard output.
    pub(crate) fn stdout(color: Color) -> Self {
        Style::of_target(color, screen::stdout_is_terminal(), screen::stdout_columns())
    }

    /// For standard error.
    pub(crate) fn stderr(color: Color) -> Self {
        Style::of_target(color, screen::stderr_is_terminal(), screen::stderr_columns())
    }

    fn of_target(color: Color, terminal: bool, columns: Option<usize>) -> Self {
        Style { colour: wanted(color, terminal), width: fitting(columns), terminal }
    }

    /// For files: without colour.
    pub(crate) fn plain() -> Self {
        Style { colour: false, width: WIDTH, terminal: false }
    }

    /// For a terminal of `columns` columns, without colour.
    #[cfg(test)]
    pub(crate) fn of_width(columns: usize) -> Self {
        Style { colour: false, width: fitting(Some(columns)), terminal: true }
    }

    /// Columns that a line may take.
    pub(crate) fn width(self) -> usize {
        self.width
    }

    /// Whether it goes to a terminal, where a legend helps; a file stays as short as it can be.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    pub(crate) fn has_colour(self) -> bool {
        self.colour
    }

    fn paint(self, look: Look, text: &str) -> String {
        if self.colour { painted(look, text) } else { text.to_owned() }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.paint(Look::Strong, text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.paint(Look::Faint, text)
    }

    pub(crate) fn handle(self, text: &str) -> String {
        self.paint(Look::Handle, text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.paint(Look::Warning, text)
    }
}

fn wanted(color: Color, is_terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => is_terminal && env_vars::colour_wanted(),
    }
}

/// Columns of a line in a terminal with this width.
fn fitting(columns: Option<usize>) -> usize {
    columns.map_or(WIDTH, |columns| columns.clamp(WIDTH_MIN, WIDTH_MAX))
}
