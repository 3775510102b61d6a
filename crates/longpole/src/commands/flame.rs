//! `flame`: a flame graph as an indented tree of functions, folded stacks or a picture.

use std::path::Path;

use anyhow::Result;
use longpole_recording::export::{self, Selection};
use longpole_recording::view;

use crate::args::{FlameArguments, FlameFormat};
use crate::export::export_file::write_to;
use crate::export::output::to_output;
use crate::failure::{Failure, Kind};
use crate::input::excerpt::excerpt;
use crate::input::load::load;
use crate::input::select::{chosen, none_chosen};
use crate::invocation::Invocation;
use crate::render::{self, flame_svg};
use crate::terminal::Style;
use crate::terminal::screen::{self, Content, Screen, print, print_json};

/// Smallest share of a box in text, in percent.
const MIN_PERCENT: f64 = 0.5;

/// Prints the flame graph of the recording, or of spans and their descendants.
pub(crate) fn flame(invocation: &Invocation, arguments: &FlameArguments) -> Result<()> {
    let (chosen, recording) = chosen(&arguments.spans, &arguments.recording);
    let (name, report) = load(invocation, recording)?;
    let time = arguments.time.time();
    let output = arguments.output.as_deref();
    let format = match arguments.format {
        Some(format) => format,
        None => by_name(output)?,
    };
    if chosen.is_some() && arguments.time.all_threads {
        return Err(Failure::new(Kind::Usage, "--all-threads shows the whole run and cannot be combined with a span").into());
    }
    let excerpt = excerpt(&arguments.excerpt, &name, &report)?;
    if format == FlameFormat::Folded {
        if !excerpt.is_whole() {
            return Err(Failure::new(Kind::Usage, "folded stacks hold the whole run or span, without --from, --to and --thread").into());
        }
        let selection = match chosen {
            None => Selection::of_run(time, arguments.time.all_threads),
            Some(chosen) => Selection::of_spans(&report, chosen, time).ok_or_else(|| none_chosen(&name, &report, chosen))?,
        };
        return write_to(&report, export::Format::Folded, &selection, output);
    }
    let view = match chosen {
        None => view::FlameView::of_run(&name, &report, time, arguments.time.all_threads, excerpt),
        Some(chosen) => {
            view::FlameView::of_spans(&name, &report, chosen, time, excerpt).ok_or_else(|| none_chosen(&name, &report, chosen))?
        }
    };
    let content = if format == FlameFormat::Json { Content::Json } else { Content::Text };
    let written = match (format, output) {
        (FlameFormat::Json, None) => return print_json(&view),
        (FlameFormat::Json, Some(_)) => screen::json(&view)?,
        (FlameFormat::Svg, _) => flame_svg::svg(&view, arguments.min),
        (_, output) => {
            let style = if output.is_none() { invocation.style() } else { Style::plain() };
            let min = arguments.min.unwrap_or(MIN_PERCENT);
            // If no wait belongs to a known span, all of them are better than none.
            let of_nobody = chosen.is_none() && view.time == view::FlameTimeView::OffCpu && view.samples == 0 && view.left_out_waits > 0;
            let of_all = of_nobody.then(|| view::FlameView::of_run(&name, &report, time, true, excerpt));
            let mut screen = Screen::default();
            if of_all.is_some() {
                screen.line(style.faint("All threads: it is unknown which of them worked for the program."));
            }
            screen.append(&render::flame::flame(of_all.as_ref().unwrap_or(&view), min, style));
            if output.is_none() {
                return print(&screen);
            }
            screen.as_str().to_owned()
        }
    };
    match output {
        None => screen::print_file(content, &written),
        Some(_) => to_output(output, content, |out| Ok(out.write_all(written.as_bytes())?)),
    }
}

/// The format by the name of a file; text for a name without an extension, such as `/dev/stdout`.
fn by_name(output: Option<&Path>) -> Result<FlameFormat> {
    let Some(extension) = output.and_then(Path::extension) else { return Ok(FlameFormat::Text) };
    Ok(match extension.to_str() {
        Some("svg") => FlameFormat::Svg,
        Some("folded") => FlameFormat::Folded,
        Some("json") => FlameFormat::Json,
        Some("txt") => FlameFormat::Text,
        _ => {
            let failure = Failure::new(Kind::Usage, "unknown format: neither --format nor the name of the output determines it");
            return Err(failure.hint("name it x.svg, x.folded, x.json or x.txt, or use --format").into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_output_says_the_format_or_none_is_written() {
        let format = |name: &str| by_name(Some(Path::new(name))).ok();
        assert_eq!(
            ["x.svg", "x.folded", "x.json", "x.txt"].map(format),
            [Some(FlameFormat::Svg), Some(FlameFormat::Folded), Some(FlameFormat::Json), Some(FlameFormat::Text)]
        );
        assert_eq!(["/dev/stdout", "x.png"].map(format), [Some(FlameFormat::Text), None]);
        assert_eq!(by_name(None).ok(), Some(FlameFormat::Text));
    }
}
