//! What a recording lacks.

use longpole_analysis::words;
use longpole_model::units::TimeUnit;
use longpole_recording::view;

use super::poles::poles_shown;
use crate::next_command::{own_name, quoted};
use crate::terminal::screen::Screen;
use crate::terminal::{Style, fit, fold};

/// Lines on data quality in an answer; `show --quality`, the page and `--format json` have the rest.
const QUALITY_SHOWN: usize = 6;

pub(crate) fn quality_lines(view: &view::SummaryView, style: Style) -> Vec<String> {
    with_ranges(view, quality_texts(&view.quality, all_samples(view), &view.recording, style), style)
}

/// The samples that losses are counted of; 0 if the recording keeps only a part of them.
fn all_samples(view: &view::SummaryView) -> u64 {
    if view.attached.is_some() { 0 } else { view.samples }
}

/// Everything that is missing.
pub(crate) fn all(view: &view::SummaryView, style: Style) -> Screen {
    let texts = view.quality.iter().map(|note| note.sentence(all_samples(view))).collect();
    let mut out = Screen::default();
    with_ranges(view, texts, style).iter().for_each(|text| out.line(text));
    out
}

fn with_ranges(view: &view::SummaryView, mut texts: Vec<String>, style: Style) -> Vec<String> {
    let is_range = |saves: [i64; 2]| {
        let unit = TimeUnit::of(saves[1]);
        unit.show(saves[0]) != unit.show(saves[1])
    };
    let ranges = view.poles[..poles_shown(view)].iter().any(|pole| is_range(pole.saves_if_zero_nanos));
    // In a run without spans they are ranges because other programs had the CPUs, which has its own line.
    let is_busy = view.spans == 0 && view.quality.iter().any(|note| note.code == "cpu_busy");
    if ranges && !is_busy {
        // Between operations dependencies are inferred; between threads they are recorded.
        texts.push(words::why_ranges(view.spans == 0).to_owned());
    }
    if texts.is_empty() {
        let is_off = view.rate_hz == 0 && view.samples == 0;
        let text = match (is_off, view.spans + view.processes) {
            (false, _) => "no known gaps",
            (true, 1..) if view.mode == view::CaptureModeView::Imported => "no known gaps; the file has no samples",
            (true, 1..) if view.processes == 0 => "no known gaps; only spans: no profile, so no functions",
            (true, 1..) => "no known gaps; profiling is off (--no-profile)",
            (true, 0) => "only the wall and CPU time of the command: no spans arrived, and profiling is off (--no-profile)",
        };
        texts.push(text.to_owned());
    }
    labelled(&texts, style)
}

/// What is missing, below a view of a part of the recording.
pub(crate) fn missing_lines(quality: &[view::QualityView], samples: u64, recording: &str, style: Style) -> Vec<String> {
    labelled(&quality_texts(quality, samples, recording, style), style)
}

fn quality_texts(quality: &[view::QualityView], samples: u64, recording: &str, style: Style) -> Vec<String> {
    let mut texts: Vec<String> = quality.iter().take(QUALITY_SHOWN).map(|note| fit(&note.sentence(samples), style.width() * 4)).collect();
    let more = quality.len().saturating_sub(QUALITY_SHOWN);
    if more > 0 {
        texts.push(format!("{more} more ({} show {} --quality)", own_name(), quoted(recording)));
    }
    texts
}

fn labelled(texts: &[String], style: Style) -> Vec<String> {
    let label = |index: usize| if index == 0 { style.faint("quality") + "   " } else { " ".repeat(10) };
    let mut out = Vec::new();
    for text in texts {
        for part in fold(text, style.width() - 10) {
            out.push(label(out.len()) + &part);
        }
    }
    out
}
