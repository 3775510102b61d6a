//! `frame`: one function, and the spans it ran in, or its source.

use anyhow::Result;
use longpole_analysis::code::functions::Functions;
use longpole_analysis::code::origin::CodeOrigin;
use longpole_analysis::{Handle, Report};
use longpole_recording::view;

use crate::args::{Format, FrameArguments};
use crate::failure::{Failure, Kind};
use crate::input::load::load;
use crate::input::select::{in_order, is_handle};
use crate::input::source_access::source_access;
use crate::invocation::Invocation;
use crate::next_command::{own_name, quoted};
use crate::render;
use crate::render::functions::place;
use crate::terminal::fit;
use crate::terminal::screen::{print, print_json};
use longpole_model::FunctionId;

/// Functions to list if several match.
const CANDIDATES_SHOWN: usize = 8;

/// Prints a function and the spans it ran in, or its source.
pub(crate) fn frame(invocation: &Invocation, arguments: &FrameArguments) -> Result<()> {
    let (text, recording) = in_order(&arguments.handle, &arguments.recording);
    let (name, report) = load(invocation, recording)?;
    let handle = function_of(&name, &report, text)?;
    let style = invocation.style();
    let none = || no_function(&name, &handle);
    if arguments.source {
        // JSON goes to files and other programs, so it holds text of source files only on request.
        let reads = arguments.format == Format::Text || arguments.source_text;
        let access = if reads { Some(source_access(invocation, recording, &report, &arguments.allow)?) } else { None };
        let view = view::SourceView::new(&name, &report, &handle, access.as_ref()).ok_or_else(none)?;
        return match arguments.format {
            Format::Json => print_json(&view),
            Format::Text => print(&render::source::source(&view, style)),
        };
    }
    let view = view::FrameView::new(&name, &report, &handle).ok_or_else(none)?;
    match arguments.format {
        Format::Json => print_json(&view),
        Format::Text => print(&render::frame::frame(&view, style)),
    }
}

fn no_line(recording: &str, file: &str, line: u32) -> Failure {
    let hint = format!("`{} frame NAME {} --source` shows which lines of a function have samples or waits", own_name(), quoted(recording));
    Failure::new(Kind::NotFound, format!("there are no samples or waits at line {line} of {file} in {recording}")).hint(hint)
}

fn no_function(recording: &str, what: &str) -> Failure {
    let hint = format!("`{} top {} --wall` lists functions with their handles", own_name(), quoted(recording));
    Failure::new(Kind::NotFound, format!("there is no function {what} in {recording}")).hint(hint)
}

/// The handle of the function that the user named by handle, name, or file and line.
fn function_of(recording: &str, report: &Report, text: &str) -> Result<String> {
    if is_handle(text) {
        return Ok(text.to_owned());
    }
    let at = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let mut found = match at {
        Some((file, line)) => report.functions_at(file, line),
        None => report.functions().named(text),
    };
    // Prefer the program's own functions; among copies of a function prefer those with a line.
    let list = &report.functions().list;
    let ways: [&dyn Fn(FunctionId) -> bool; 2] = [&|id| list[id].whose == CodeOrigin::Program, &|id| list[id].line > 0];
    for is_meant in ways {
        if found.iter().any(|&id| is_meant(id)) {
            found.retain(|&id| is_meant(id));
        }
    }
    let words = |&id: &FunctionId| {
        let function = &report.functions().list[id];
        format!("{} {}{}", Handle::Function(id), fit(&function.function, 60), place(&function.file, function.line))
    };
    let several = |what: &str| {
        let mut list: Vec<String> = found.iter().take(CANDIDATES_SHOWN).map(words).collect();
        if found.len() > CANDIDATES_SHOWN {
            list.push(format!("… {} more", found.len() - CANDIDATES_SHOWN));
        }
        let failure = Failure::new(Kind::NotFound, what.to_owned());
        Err(failure.hint("choose one by its handle:").list(list).into())
    };
    let is_called = |id: FunctionId| at.is_some() || Functions::is_called(&list[id].function, text);
    match &found[..] {
        [] if let Some((file, line)) = at => Err(no_line(recording, file, line).into()),
        [] if report.recording().samples.is_empty() => {
            let hint = if report.recording().waits.is_empty() {
                "it has no samples and no waits, so no functions are known".to_owned()
            } else {
                format!("there are no samples, so only functions that waited are known: {} top {} --off-cpu", own_name(), quoted(recording))
            };
            Err(Failure::new(Kind::NotFound, format!("there is no function called “{text}” in {recording}")).hint(hint).into())
        }
        [] => Err(no_function(recording, &format!("called “{text}”")).into()),
        [one] if is_called(*one) || list[*one].whose == CodeOrigin::Program => Ok(Handle::Function(*one).to_string()),
        [_] => several(&format!("no function of {recording} is called “{text}”; one has it in its name")),
        all => several(&format!("{} functions of {recording} match “{text}”", all.len())),
    }
}
