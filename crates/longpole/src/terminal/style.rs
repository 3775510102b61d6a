//! Text with or without colour.

use crate::args::Color;
use crate::env_vars;
use crate::terminal::screen::{self, Look, painted};

/// Text with or without colour.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For standard output.
    pub(crate) fn stdout(color: Color) -> Self {
        Style { colour: wanted(color, screen::stdout_is_terminal()) }
    }

    /// For standard error.
    pub(crate) fn stderr(color: Color) -> Self {
        Style { colour: wanted(color, screen::stderr_is_terminal()) }
    }

    /// Without colour: files.
    pub(crate) fn plain() -> Self {
        Style { colour: false }
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
