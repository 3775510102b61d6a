//! `run`: the whole story in one file.
//!
//! ```text
//! take over signals → create the recording → open the receiver → start the command behind its gate → attach the recorder → open the gate
//!   … the command runs; its spans and samples go to the log …
//! reap the command → finish the recorder → drain the receiver → seal the log → print the answer → exit as the command did
//! ```
//!
//! Two promises hold throughout. The command does not notice: its stdin, stdout, signals and exit are its own, and so is its environment
//! except for a few variables. And problems of recording never change the exit status without `--strict`: longpole does without a store,
//! a port or samples, and says so at the end.

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use longpole_capture::launch::child;
use longpole_capture::launch::error::LaunchError;
use longpole_capture::launch::runtime_options::{self, JitRuntime};
use longpole_capture::launch::signals;
use longpole_model::Exit;
use longpole_recording::{kept, view};
use longpole_server::Access;
use longpole_store::outside;
use tracing::info_span;

use crate::args::{Format, Jit, RunArguments, SourceArguments, SummaryTarget};
use crate::commands::push;
use crate::input::source_access::source_consent;
use crate::invocation::Invocation;
use crate::launch_failure::{EXIT_OWN_FAILURE, report_not_started, run_unrecorded};
use crate::own_traces;
use crate::page::{self, Serving};
use crate::render::answer::answer as answer_text;
use crate::session::{Ended, Session, inherited, not_whole, start};
use crate::terminal::Style;
use crate::terminal::screen::{self, Screen};
use crate::terminal::stderr::note;

/// Runs the command and exits as it did.
pub(crate) fn run(invocation: &Invocation, arguments: &RunArguments) -> ExitCode {
    // First of all: signals from now on are for the command.
    if let Err(error) = signals::begin() {
        return unrecorded(arguments, &inherited(arguments), &error);
    }
    if arguments.strict {
        signals::be_strict();
    }
    own_traces::begin(invocation.tracing_level);
    let whole = info_span!("run").entered();
    let created = unharmed(|| {
        let mut recorded = Session::create(invocation, arguments)?;
        let environment = recorded.environment(arguments);
        Ok((recorded, environment))
    });
    let (mut recorded, mut environment, mut trouble) = match created {
        Ok((recorded, environment)) => (Some(recorded), environment, None),
        Err(error) => {
            note(format!("nothing is recorded: {error:#}"));
            (None, inherited(arguments), Some(error))
        }
    };
    if recorded.is_some() && !arguments.no_profile {
        runtime_options::add(&runtimes(arguments), &mut environment);
    }
    let mut started = start(arguments, &environment, recorded.as_mut());
    if matches!(&started, Err(error) if error.is_ours())
        && let Some(recorded) = recorded.take()
    {
        // The recording may have used up what the command lacks.
        recorded.discard();
        environment = inherited(arguments);
        let error = started.err().map_or_else(|| anyhow::anyhow!("no process"), anyhow::Error::new);
        note(format!("nothing is recorded: {error:#}"));
        trouble = Some(error);
        started = start(arguments, &environment, None);
    }
    let is_recorded = recorded.is_some();
    let (mut child, recorder) = match started {
        Ok(started) => started,
        Err(error) if error.is_ours() => {
            drop(whole);
            own_traces::end();
            return unrecorded(arguments, &environment, &error);
        }
        Err(error) => {
            if let Some(recorded) = recorded {
                recorded.discard();
            }
            return report_not_started(&error);
        }
    };
    let exit = info_span!("command").in_scope(|| child.wait());
    let ended = Instant::now();
    let trouble = match (recorded, trouble) {
        (Some(recorded), _) => {
            let used = (child.cpu_nanos(), child.usage(), child.last_usage().filter(|_| recorder.is_some()));
            // The panic hook has reported a bug in longpole; it must not change the exit status.
            unharmed(|| answer(invocation, arguments, recorded.end(arguments, (exit, ended), used, recorder)?)).err()
        }
        (None, trouble) => trouble,
    };
    if let Some(error) = &trouble {
        if is_recorded {
            let but = if error.is::<push::NotSent>() { "" } else { "its recording is incomplete: " };
            note(format!("the command ran, but {but}{error:#}"));
        }
        if arguments.strict && exit == Exit::Code(0) {
            return ExitCode::from(EXIT_OWN_FAILURE);
        }
    }
    drop(whole);
    own_traces::end();
    child::exit_like(exit)
}

/// Turns a panic, which the panic hook has reported, into an error, so that it does not affect the command.
fn unharmed<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(anyhow::anyhow!("a bug in longpole, reported above")))
}

/// The same if allowed: with `--strict` longpole must stay to report that there is no recording.
fn unrecorded(arguments: &RunArguments, environment: &[(OsString, OsString)], error: &LaunchError) -> ExitCode {
    if error.is_ours() && !arguments.strict { run_unrecorded(arguments.argv(), environment, error) } else { report_not_started(error) }
}

/// The runtimes of `--jit`, each once.
fn runtimes(arguments: &RunArguments) -> Vec<JitRuntime> {
    let is_asked = |runtime: &Jit| arguments.jit.contains(runtime);
    let all = [(Jit::Node, JitRuntime::Node), (Jit::Java, JitRuntime::Java)];
    all.into_iter().filter(|(runtime, _)| is_asked(runtime)).map(|(_, names)| names).collect()
}

/// Writes the summary, and opens the page if `--open` says so.
fn answer(invocation: &Invocation, arguments: &RunArguments, ended: Ended) -> Result<()> {
    let Ended { writer, sealed, trouble } = ended;
    let name = writer.name();
    let view = view::SummaryView::new(name.to_string(), &sealed.report);
    write_summary(invocation, arguments, &view)?;
    kept::keep(writer.store(), name, &view);
    if let Some(error) = trouble.or_else(|| not_whole(&writer, sealed)) {
        return Err(error);
    }
    if let Some(server) = &arguments.to {
        push::send_after(writer.store(), name, server)?;
    }
    if arguments.open {
        // The page opens the store itself.
        let store = writer.store().root().to_owned();
        drop(writer);
        let consent = source_consent(&SourceArguments { allow_source: Vec::new() })?;
        let label = name.to_string();
        page::serve(&store, name, Serving { port: None, access: Access::Token, browser: true, label: &label, consent })?;
    }
    Ok(())
}

fn write_summary(invocation: &Invocation, arguments: &RunArguments, view: &view::SummaryView) -> Result<()> {
    match (&arguments.summary, arguments.summary_format) {
        (SummaryTarget::Nowhere, _) => Ok(()),
        (SummaryTarget::Stderr, Format::Text) => {
            let mut screen = Screen::of("");
            screen.append(&answer_text(view, Style::stderr(invocation.color)));
            screen::say_all(&screen);
            Ok(())
        }
        (SummaryTarget::Stderr, Format::Json) => screen::say_json(view),
        (SummaryTarget::File(path), format) => {
            let text = match format {
                Format::Text => answer_text(view, Style::plain()).as_str().to_owned(),
                Format::Json => screen::json(view)?,
            };
            // It names the command and its arguments, so only the user may read a new file.
            let file = outside::create(path, 0o600);
            file.and_then(|mut file| Ok(file.write_all(text.as_bytes())?))
                .with_context(|| format!("failed to write the answer to {}", path.display()))
        }
    }
}
