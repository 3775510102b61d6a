//! Spans and code as a file for another tool: the format, the selected code, and what the file leaves out.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use longpole_analysis::Report;
use longpole_analysis::report::FlameTime;
use longpole_model::Loss;
use longpole_model::units::counted;
use longpole_recording::export::{self, Selection};
use longpole_recording::view::Chosen;
use longpole_store::Store;

use crate::args::{CodeArguments, ExportFormat, OutputArguments, ProfileOf};
use crate::export::output::{Access, to_output, to_output_of};
use crate::failure::{Failure, Kind};
use crate::input::load::resolve;
use crate::input::select::not_found;
use crate::terminal::screen::Content;
use crate::terminal::stderr::{hint, note};

/// Ending of the names of compressed files.
const GZIPPED: &str = ".gz";

/// The format by `--to`, or by the name of the output.
pub(crate) fn format_of(output: &OutputArguments) -> Result<ExportFormat> {
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
        // `.lpole` is compressed anyway.
        let is_it = |(ending, format): &&(&str, ExportFormat)| {
            name.ends_with(ending) || (*format != ExportFormat::Lpole && plain.ends_with(ending))
        };
        endings.iter().find(is_it).map(|(_, format)| *format)
    };
    let unknown = || {
        Failure::new(Kind::Usage, "unknown format: neither --to nor the name of the output determines it")
            .hint("--to otlp-json, or see --help")
    };
    Ok(output.to.or_else(by_name).ok_or_else(unknown)?)
}

pub(crate) fn write(name: &str, report: &Report, format: ExportFormat, output: &OutputArguments) -> Result<()> {
    let granularity_nanos = nanos(output.granularity);
    let holds_code = matches!(
        format,
        ExportFormat::Chrome | ExportFormat::Firefox | ExportFormat::Speedscope | ExportFormat::Pprof | ExportFormat::Folded
    );
    let code = &output.code;
    let selects = code.span.is_some() || code.on_cpu || code.off_cpu || code.wall || code.all_threads;
    if selects && (!holds_code || output.of == Some(ProfileOf::Spans)) {
        let failure =
            Failure::new(Kind::Usage, "--span, --on-cpu, --off-cpu, --wall and --all-threads select code, and this format has none");
        return Err(failure.hint("--to pprof, firefox, speedscope, folded or chrome").into());
    }
    let selection = selection(name, report, code, format)?;
    let has_code = holds_code && export::has_code(report, &selection);
    let is_profile = matches!(format, ExportFormat::Pprof | ExportFormat::Folded);
    let of_spans = match output.of {
        Some(_) if !is_profile => {
            return Err(Failure::new(Kind::Usage, "--of is for profiles only").hint("--to pprof or folded").into());
        }
        Some(of) => of == ProfileOf::Spans,
        None => !has_code && code.span.is_none(),
    };
    if !has_code && (is_profile && !of_spans || format == ExportFormat::Speedscope) {
        let of = code.span.as_ref().map(|handle| format!(" of {handle}")).unwrap_or_default();
        let failure = Failure::new(Kind::Failed, format!("there is no code{of} in {name}: no samples and no sampled waits"));
        return Err(failure.hint("--to pprof --of spans shows the wall time of spans").into());
    }
    if is_profile && of_spans && output.of.is_none() {
        note(format!("{name} has no code, so the profile shows the wall time of its spans"));
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
        // A recording is packed from the store, not made from a report.
        ExportFormat::Lpole => return Ok(()),
    };
    if !holds_code && report.recording().spans.is_empty() && !report.recording().samples.is_empty() {
        note(format!("{name} has no spans, so the file has none; for its code: --to pprof, firefox, speedscope, folded or chrome"));
    }
    write_to(report, format_out, &selection, output.output.as_deref())
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The selected code.
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
        Some(handle) => Ok(Selection::of_spans(report, Chosen::Handle(handle), time).ok_or_else(|| not_found(name, report, handle))?),
    }
}

/// Writes a file, gzipped if its name says so, and reports what it leaves out.
pub(crate) fn write_to(report: &Report, format: export::Format, selection: &Selection, output: Option<&Path>) -> Result<()> {
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

pub(crate) fn pack(store: &Store, recording: &str, output: Option<&Path>) -> Result<()> {
    let stored = store.recording(resolve(store, recording)?)?;
    // A recording is private: the file is readable for its owner only, as the store is.
    let bytes = to_output_of(Access::Owner, output, Content::Binary, |out| Ok(stored.write_archive(out)?))?;
    // Files have a lower memory limit than recordings in the store.
    if let Some(reason) = stored.refusal_as_file(bytes)? {
        let file = output.map_or_else(|| "the file".to_owned(), |path| path.display().to_string());
        note(format!("wrote {file}, but longpole will refuse to open it: {reason}"));
        hint("keep the original, which longpole can show; the tables in the file are Parquet, which other tools can read");
    }
    Ok(())
}

/// Reports what the file leaves out.
pub(crate) fn say_losses(losses: &[Loss]) {
    for loss in losses {
        note(format!("{} not in the file: {}", counted(loss.count, "item", "items"), loss.detail));
    }
}
