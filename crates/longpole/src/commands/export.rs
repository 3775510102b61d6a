//! `export`, `convert` and Pulumi's `convert-trace`: spans and code as a file for another tool.

use std::io::{BufWriter, IntoInnerError, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use longpole_analysis::Report;
use longpole_analysis::report::FlameTime;
use longpole_model::{Loss, LossKind};
use longpole_server::export::Selection;
use longpole_server::{export, forward};
use longpole_store::Store;
use longpole_store::outside::{NotCreated, Place};

use super::exec;
use super::import;
use super::recording::{Setting, TemporaryStore, load_stored, own_name, resolve};
use super::run::say;
use super::span::not_found;
use crate::args::{CodeArguments, ConvertArguments, ConvertTraceArguments, ExportArguments, ExportFormat, OutputArguments, ProfileOf};
use crate::failure::{Failure, Kind};
use crate::screen::{self, Content};
use crate::terminal::count;

/// Spans in a request of `convert-trace --otel`: what batch processors send. gRPC servers refuse what is larger than 4 MiB.
const SPANS_PER_REQUEST: usize = 512;

/// How long the endpoint of `convert-trace --otel` may take for one request.
const SEND_MAX: Duration = Duration::from_secs(10);

/// Where spans go when nobody says: OpenTelemetry's default for gRPC.
const ENDPOINT_DEFAULT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317");

/// A file whose name ends so is written compressed.
const GZIPPED: &str = ".gz";

/// What Pulumi's log calls are called, in the old tracing and the new.
const LOG_SPANS: [&str; 2] = ["/pulumirpc.Engine/Log", "pulumirpc.Engine/Log"];

/// Writes a recording as a file.
pub(crate) fn export(setting: &Setting, arguments: &ExportArguments) -> Result<()> {
    let store = setting.open_store()?;
    let format = format_of(&arguments.output)?;
    if format == ExportFormat::Lpole {
        // One whose recorder was killed is sealed by looking at it.
        load_stored(&store, &arguments.recording)?;
        return pack(&store, &arguments.recording, arguments.output.output.as_deref());
    }
    let (name, report) = load_stored(&store, &arguments.recording)?;
    write(&name, &report, format, &arguments.output)
}

/// Writes a file as another.
pub(crate) fn convert(arguments: &ConvertArguments) -> Result<()> {
    let format = format_of(&arguments.output)?;
    if format == ExportFormat::Lpole {
        let (store, name) = TemporaryStore::of_file(&arguments.file)?;
        return pack(&store.open()?, &name.to_string(), arguments.output.output.as_deref());
    }
    // What stands in the file goes into the file: nothing is joined.
    let report = Report::new(import::read(&arguments.file)?.recording());
    let unread: Vec<Loss> = report.recording().losses.iter().filter(|loss| LOST_IN_READING.contains(&loss.kind)).cloned().collect();
    say_losses(&unread);
    write(&arguments.file.display().to_string(), &report, format, &arguments.output)
}

/// What reading a file can lose of it, so that the file made of it has less.
const LOST_IN_READING: [LossKind; 5] =
    [LossKind::SpansInvalid, LossKind::ReferencesInvalid, LossKind::TextReplaced, LossKind::AttributesCut, LossKind::FileCut];

/// A profile of wall time on standard output; with `--otel` spans to the endpoint of the environment.
pub(crate) fn convert_trace(arguments: &ConvertTraceArguments) -> Result<()> {
    let mut recording = import::read(&arguments.file)?.recording();
    if arguments.ignore_log_spans {
        recording.spans.retain(|span| !LOG_SPANS.contains(&span.name.as_str()));
    }
    if !arguments.otel {
        let format = export::Format::PprofOfSpans { granularity_nanos: nanos(arguments.granularity) };
        return write_to(&Report::new(recording), format, &Selection::of_run(FlameTime::Wall, false), None);
    }
    let mut environment: Vec<_> = std::env::vars_os().collect();
    let target = exec::target(&environment).or_else(|| {
        environment.push((ENDPOINT_DEFAULT.0.into(), ENDPOINT_DEFAULT.1.into()));
        exec::target(&environment)
    });
    let Some(target) = target else {
        let failure = Failure::new(
            Kind::Usage,
            "the environment keeps spans from being sent: OTEL_SDK_DISABLED, OTEL_TRACES_EXPORTER or the sampler",
        );
        return Err(failure.hint(format!("{} doctor says which", own_name())).into());
    };
    for spans in recording.spans.chunks(SPANS_PER_REQUEST) {
        forward::send_once(target.clone(), spans, SEND_MAX).context("failed to send the spans")?;
    }
    say(format!("longpole: {} spans sent", count(recording.spans.len() as u64)));
    Ok(())
}

/// The format that was asked for, or that the name of the output says.
fn format_of(output: &OutputArguments) -> Result<ExportFormat> {
    let by_name = || {
        let name = output.output.as_ref()?.file_name()?.to_string_lossy().into_owned();
        let endings = [
            (".lpole", ExportFormat::Lpole),
            (".pprof", ExportFormat::Pprof),
            (".pb.gz", ExportFormat::Pprof),
            (".folded", ExportFormat::Folded),
            (".firefox.json", ExportFormat::Firefox),
            (".speedscope.json", ExportFormat::Speedscope),
            (".zipkin.json", ExportFormat::Zipkin),
            (".jaeger.json", ExportFormat::Jaeger),
            (".chrome.json", ExportFormat::Chrome),
            (".trace", ExportFormat::Appdash),
            (".pb", ExportFormat::OtlpProtobuf),
            (".json", ExportFormat::OtlpJson),
        ];
        let plain = name.strip_suffix(GZIPPED).unwrap_or(&name);
        // What is for longpole is compressed as it is.
        let is_it = |(ending, format): &&(&str, ExportFormat)| {
            name.ends_with(ending) || (*format != ExportFormat::Lpole && plain.ends_with(ending))
        };
        endings.iter().find(is_it).map(|(_, format)| *format)
    };
    let unknown =
        || Failure::new(Kind::Usage, "no format: neither --to nor the name of the output says one").hint("--to otlp-json, or see --help");
    Ok(output.to.or_else(by_name).ok_or_else(unknown)?)
}

fn write(name: &str, report: &Report, format: ExportFormat, output: &OutputArguments) -> Result<()> {
    let granularity_nanos = nanos(output.granularity);
    let holds_code = matches!(
        format,
        ExportFormat::Chrome | ExportFormat::Firefox | ExportFormat::Speedscope | ExportFormat::Pprof | ExportFormat::Folded
    );
    let code = &output.code;
    let selects = code.span.is_some() || code.on_cpu || code.off_cpu || code.wall || code.all_threads;
    if selects && (!holds_code || output.of == Some(ProfileOf::Spans)) {
        let failure = Failure::new(Kind::Usage, "this holds no code: --span, --on-cpu, --off-cpu, --wall and --all-threads select some");
        return Err(failure.hint("--to pprof, firefox, speedscope, folded or chrome").into());
    }
    let selection = selection(name, report, code, format)?;
    let has_code = holds_code && export::has_code(report, &selection);
    let is_profile = matches!(format, ExportFormat::Pprof | ExportFormat::Folded);
    let of_spans = match output.of {
        Some(_) if !is_profile => {
            return Err(Failure::new(Kind::Usage, "--of is about profiles").hint("--to pprof or folded").into());
        }
        Some(of) => of == ProfileOf::Spans,
        None => !has_code && code.span.is_none(),
    };
    if !has_code && (is_profile && !of_spans || format == ExportFormat::Speedscope) {
        let of = code.span.as_ref().map(|handle| format!(" of {handle}")).unwrap_or_default();
        let failure = Failure::new(Kind::Failed, format!("there is no code{of} in {name}: no sample, no wait that was looked at"));
        return Err(failure.hint("--to pprof --of spans has the wall time of spans").into());
    }
    if is_profile && of_spans && output.of.is_none() {
        say(format!("longpole: there is no code in {name}, so the profile is of the wall time of its spans"));
    }
    let format_out = match format {
        ExportFormat::OtlpJson => export::Format::OtlpJson,
        ExportFormat::OtlpProtobuf => export::Format::OtlpProtobuf,
        ExportFormat::Zipkin => export::Format::Zipkin,
        ExportFormat::Jaeger => export::Format::Jaeger,
        ExportFormat::Appdash => export::Format::AppDash,
        ExportFormat::Chrome => export::Format::Chrome,
        ExportFormat::Firefox => export::Format::Firefox,
        ExportFormat::Speedscope => export::Format::Speedscope,
        ExportFormat::Pprof if of_spans => export::Format::PprofOfSpans { granularity_nanos },
        ExportFormat::Folded if of_spans => export::Format::FoldedOfSpans { granularity_nanos },
        ExportFormat::Pprof => export::Format::Pprof,
        ExportFormat::Folded => export::Format::Folded,
        // A whole recording is not made of a report.
        ExportFormat::Lpole => return Ok(()),
    };
    if !holds_code && report.recording().spans.is_empty() && !report.recording().samples.is_empty() {
        say(format!(
            "longpole: there is no span in {name}, so the file holds none; its code: --to pprof, firefox, speedscope, folded or chrome"
        ));
    }
    write_to(report, format_out, &selection, output.output.as_deref())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The code that was asked for.
fn selection(name: &str, report: &Report, code: &CodeArguments, format: ExportFormat) -> Result<Selection> {
    let time = match (code.on_cpu, code.off_cpu, code.wall) {
        (true, ..) => FlameTime::OnCpu,
        (_, true, _) => FlameTime::OffCpu,
        (_, _, true) => FlameTime::Wall,
        _ if format == ExportFormat::Folded => FlameTime::OnCpu,
        _ => FlameTime::Wall,
    };
    match &code.span {
        None => Ok(Selection::of_run(time, code.all_threads)),
        Some(handle) => Ok(Selection::of_span(report, handle, time).ok_or_else(|| not_found(name, handle))?),
    }
}

/// Writes a file, gzipped if its name says so, and says what is not in it.
pub(super) fn write_to(report: &Report, format: export::Format, selection: &Selection, output: Option<&Path>) -> Result<()> {
    use export::Format::{AppDash, Folded, FoldedOfSpans, OtlpProtobuf, Pprof, PprofOfSpans};
    let is_gzip = matches!(format, Pprof | PprofOfSpans { .. });
    let gzips = !is_gzip && output.is_some_and(|path| path.to_string_lossy().ends_with(GZIPPED));
    let content = match format {
        _ if is_gzip || gzips => Content::Binary,
        OtlpProtobuf | AppDash => Content::Binary,
        Folded | FoldedOfSpans { .. } => Content::Text,
        _ => Content::Json,
    };
    let write = if gzips { export::write_gzipped } else { export::write };
    say_losses(&to_output(output, content, |out| Ok(write(report, format, selection, out)?))?);
    Ok(())
}

fn pack(store: &Store, recording: &str, output: Option<&Path>) -> Result<()> {
    let stored = store.recording(resolve(store, recording)?)?;
    // A recording holds what its user's programs did; as a file it is as private as in the store.
    let bytes = to_output_of(Access::Owner, output, Content::Binary, |out| Ok(stored.write_archive(out)?))?;
    // A file may take less memory than a recording of the own store.
    if let Some(reason) = stored.refusal_as_file(bytes)? {
        let file = output.map_or_else(|| "the file".to_owned(), |path| path.display().to_string());
        say(format!("longpole: {file} is written, and longpole refuses to open it: {reason}"));
        say("hint: keep what it was made of, which longpole shows; the tables in the file are Parquet, which other tools read");
    }
    Ok(())
}

/// Gives `fill` a place to write to: a file that takes its name only when it is whole, or standard output.
pub(super) fn to_output<T>(output: Option<&Path>, content: Content, fill: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    to_output_of(Access::Umask, output, content, fill)
}

/// Who can read a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Whoever the umask lets: the file is the user's own output, for another tool.
    Umask,
    /// Its user alone.
    Owner,
}

fn to_output_of<T>(access: Access, output: Option<&Path>, content: Content, fill: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
    let refused = || Failure::new(Kind::Usage, "this format is not for a terminal").hint("-o FILE, or > FILE");
    let Some(path) = output else {
        let mut out = BufWriter::new(screen::stdout_for(content).ok_or_else(refused)?);
        let filled = fill(&mut out).and_then(|value| Ok(out.flush().map(|()| value)?));
        return filled.context("failed to write to standard output");
    };
    let fail = || format!("failed to write {}", path.display());
    let mode = if access == Access::Owner { 0o600 } else { 0o666 };
    let place = Place::find(path).map_err(|error| not_created(path, error))?;
    // A device, a pipe and what a link leads to are written as they are; a file of this name is replaced at once, so that nobody reads half
    // of it.
    if !place.is_plain() {
        let device = place.create(mode).with_context(fail)?;
        let mut out = BufWriter::new(screen::device_for(content, device).ok_or_else(refused)?);
        return fill(&mut out).and_then(|value| Ok(out.flush().map(|()| value)?)).with_context(fail);
    }
    let written = place.replace(mode).map_err(anyhow::Error::from).and_then(|file| {
        let mut out = BufWriter::new(file);
        let value = fill(&mut out)?;
        out.into_inner().map_err(IntoInnerError::into_error)?.finish()?;
        Ok(value)
    });
    written.with_context(fail)
}

/// Why a link, a pipe or a device was not opened.
fn not_created(path: &Path, error: NotCreated) -> anyhow::Error {
    let text = format!("failed to write {}: {error}", path.display());
    match error {
        NotCreated::OfAnother { .. } => {
            Failure::new(Kind::NotPermitted, text).hint("-o FILE with another name, or in a folder of your own").into()
        }
        NotCreated::Exchangeable { .. } => {
            Failure::new(Kind::NotPermitted, text).hint("-o FILE in a folder of your own, or the file that is meant").into()
        }
        NotCreated::Io(error) => anyhow::Error::new(error).context(format!("failed to write {}", path.display())),
    }
}

/// What is not in the file, on standard error.
fn say_losses(losses: &[Loss]) {
    for loss in losses {
        say(format!("longpole: not in the file: {} × {}", count(loss.count), loss.detail));
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_was_exchanged_while_it_was_written_is_no_success() {
        let folder = std::env::temp_dir().join(format!("longpole-export-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let (path, precious) = (folder.join("x.json"), folder.join("precious"));
        fs::write(&precious, "kept").unwrap();
        let exchange = || {
            let partial =
                fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.to_string_lossy().ends_with(".partial"));
            fs::remove_file(partial.as_ref().unwrap()).unwrap();
            std::os::unix::fs::symlink(&precious, partial.unwrap()).unwrap();
        };
        let written = to_output(Some(&path), Content::Json, |out| {
            exchange();
            Ok(out.write_all(b"{}")?)
        });
        let error = format!("{:#}", written.unwrap_err());
        assert!(error.ends_with("somebody exchanged it while it was written"), "{error}");
        assert!(path.symlink_metadata().is_err());
        to_output(Some(&path), Content::Json, |out| Ok(out.write_all(b"{}")?)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}");
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        fs::remove_dir_all(&folder).unwrap();
    }
}
