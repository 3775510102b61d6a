//! What a person reads: the one door to the terminal, colours, text in columns.

pub(crate) mod screen;
pub(crate) mod stderr;
mod style;
mod text;

pub(crate) use self::screen::width;
pub(crate) use self::style::Style;
pub(crate) use self::text::{MEASURE, column_widths, cut, first_line, fit, fold, function_words, pad, right};
