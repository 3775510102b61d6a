//! A flame graph as a self-contained SVG. The root is at the top; hovering a box shows its details.

use std::borrow::Cow;
use std::fmt::Write;

use longpole_model::units::{TimeUnit, counted};
use longpole_recording::view::{FlameFrameView, FlameTimeView, FlameView, RuntimeView};

use crate::terminal::screen::{is_unsafe, printable};

/// Width of the picture, its margin, the height of a row and of the head, in pixels.
const WIDTH_PX: f64 = 1200.0;

const MARGIN_PX: f64 = 10.0;

const ROW_PX: f64 = 17.0;

const HEAD_PX: f64 = 52.0;

/// Narrower boxes are invisible.
const BOX_MIN_PX: f64 = 0.3;

/// Characters of a name on hover: each of a million boxes may have a name of four thousand.
const TITLE_CHARACTERS_MAX: usize = 500;

/// Width of a character in the font below, and the least number of them worth writing.
const CHARACTER_PX: f64 = 6.7;

const CHARACTERS_MIN: usize = 3;

const STYLE: &str = "text{font:11px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#111}\
    .head{font:bold 15px system-ui,sans-serif}.note{font:12px system-ui,sans-serif;fill:#555}\
    rect{stroke:#fff;stroke-width:.5}g:hover rect{stroke:#000;stroke-width:1}";

/// The picture. It leaves out and counts boxes below `min_percent` of the whole, or too narrow to see.
pub(crate) fn svg(view: &FlameView, min_percent: Option<f64>) -> String {
    let nodes = &view.nodes;
    let whole = view.weight_nanos.max(1) as f64;
    let scale = (WIDTH_PX - 2.0 * MARGIN_PX) / whole;
    let unit = TimeUnit::of(view.weight_nanos);
    let width_min = min_percent.map_or(BOX_MIN_PX, |percent| percent / 100.0 * whole * scale);
    let mut boxes = String::new();
    let mut left_out = 0u64;
    let mut depth_max = 0;
    for row in 0..nodes.parent.len() {
        let (x, width) = (MARGIN_PX + nodes.offset_nanos[row] as f64 * scale, nodes.total_nanos[row] as f64 * scale);
        if row > 0 && width < width_min {
            left_out += 1;
            continue;
        }
        depth_max = depth_max.max(nodes.depth[row]);
        let y = HEAD_PX + f64::from(nodes.depth[row]) * ROW_PX;
        let frame = usize::try_from(nodes.frame[row]).ok().and_then(|frame| view.frames.get(frame));
        let name = frame.map_or(view.title.as_str(), |frame| frame.function.as_str());
        let percent = nodes.total_nanos[row] as f64 / whole * 100.0;
        let place = frame.map(|frame| place(frame, nodes.line[row])).unwrap_or_default();
        // The line break is ours.
        let title = format!(
            "{}\n{} ({percent:.1}%) in total, {} self",
            printable(&format!("{}{place}", beginning(name, TITLE_CHARACTERS_MAX))),
            unit.show(nodes.total_nanos[row]),
            unit.show(nodes.self_nanos[row])
        );
        let color = color(frame, view.time == FlameTimeView::OffCpu);
        let _ = write!(
            boxes,
            "<g><title>{}</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" rx=\"1.5\" fill=\"{color}\"/>",
            escaped(&title),
            ROW_PX - 1.0
        );
        if let Some(text) = shortened(&printable(name), width) {
            let _ = write!(boxes, "<text x=\"{:.1}\" y=\"{}\">{}</text>", x + 3.0, y + 12.0, escaped(&text));
        }
        boxes.push_str("</g>\n");
    }
    let height = HEAD_PX + f64::from(depth_max + 1) * ROW_PX + MARGIN_PX;
    let (head, notes) = (head(view, unit), notes(view, left_out));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH_PX} {height}\" width=\"{WIDTH_PX}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text class=\"head\" x=\"{MARGIN_PX}\" y=\"22\">{}</text>\n<text class=\"note\" x=\"{MARGIN_PX}\" y=\"40\">{}</text>\n{boxes}</svg>\n",
        escaped(&printable(&head)),
        escaped(&printable(&head)),
        escaped(&notes)
    )
}

fn head(view: &FlameView, unit: TimeUnit) -> String {
    let time = match view.time {
        FlameTimeView::OffCpu => "blocked",
        FlameTimeView::Wall => "on-CPU and blocked",
        FlameTimeView::OnCpu => "on-CPU",
    };
    format!("{}: {} {time} ({})", view.title, unit.show(view.weight_nanos), view.recording)
}

fn notes(view: &FlameView, left_out: u64) -> String {
    let of = match view.time {
        FlameTimeView::OffCpu => counted(view.samples, "wait", "waits"),
        FlameTimeView::Wall => counted(view.samples, "sample or wait", "samples and waits"),
        FlameTimeView::OnCpu => counted(view.samples, "sample", "samples"),
    };
    let mut notes = vec![of];
    if view.few_samples {
        notes.push("fewer than 20: a hint, not a measurement".to_owned());
    }
    if view.left_out_waits > 0 {
        notes.push(format!("{} of threads without a span left out (--all-threads)", counted(view.left_out_waits, "wait", "waits")));
    }
    if view.cut_samples > 0 {
        notes.push(format!("{} cut short at their innermost functions: too many paths", counted(view.cut_samples, "sample", "samples")));
    }
    if left_out > 0 {
        notes.push(format!("{} left out", counted(left_out, "small box", "small boxes")));
    }
    notes.join(" · ")
}

/// ` (app.py:12)`, if the file is known.
fn place(frame: &FlameFrameView, line: u32) -> String {
    match (frame.file.rsplit('/').next().unwrap_or_default(), line) {
        ("", _) => String::new(),
        (file, 0) => format!(" ({file})"),
        (file, line) => format!(" ({file}:{line})"),
    }
}

/// As much of a name as fits into a box; `None` if that is too little.
fn shortened(name: &str, width_px: f64) -> Option<String> {
    let room = ((width_px - 6.0) / CHARACTER_PX).max(0.0) as usize;
    if name.chars().nth(room).is_none() {
        return Some(name.to_owned());
    }
    (room >= CHARACTERS_MIN).then(|| beginning(name, room).into_owned())
}

/// At most `characters_max` characters of a name, with `…` if it is cut.
fn beginning(name: &str, characters_max: usize) -> Cow<'_, str> {
    match name.chars().nth(characters_max) {
        Some(_) => name.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect(),
        None => name.into(),
    }
}

/// The same function has the same colour in every picture: warm for machine code, green, turquoise and violet for Python, Node and
/// Java, red for the kernel, blue where it is blocked, grey where nothing is known.
fn color(frame: Option<&FlameFrameView>, is_blocked: bool) -> String {
    let Some(frame) = frame else { return "#d8d8d8".to_owned() };
    // FNV-1a: the same in every run.
    let hash = frame.function.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let part = |shift: u32, from: u64, to: u64| from + ((hash >> shift) & 0xff) * (to - from) / 0xff;
    let (red, green, blue) = match frame.runtime {
        Some(RuntimeView::Python) => (part(8, 150, 190), part(16, 200, 235), part(24, 120, 165)),
        Some(RuntimeView::Kernel) => (part(8, 205, 235), part(16, 110, 150), part(24, 110, 150)),
        Some(RuntimeView::Node) => (part(8, 120, 165), part(16, 205, 235), part(24, 205, 240)),
        Some(RuntimeView::Jvm | RuntimeView::Other) => (part(8, 200, 230), part(16, 165, 205), part(24, 220, 245)),
        None if frame.function.starts_with('[') || frame.reason.is_some() => (part(8, 200, 220), part(8, 200, 220), part(8, 200, 220)),
        None if is_blocked => (part(8, 135, 185), part(16, 175, 215), part(24, 225, 250)),
        None => (part(8, 235, 253), part(16, 140, 215), part(24, 70, 120)),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Text for XML, which allows no control characters: they are escaped as in the terminal.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push('\n'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            unsafe_character if is_unsafe(unsafe_character) => out.push_str(&printable(unsafe_character.encode_utf8(&mut [0; 4]))),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use longpole_analysis::Report;
    use longpole_analysis::report::FlameTime;
    use longpole_model::text;

    use super::*;

    #[test]
    fn boxes_are_as_wide_as_their_share_and_names_are_escaped() {
        let report = Report::new(
            text::parse("run x 0..100ms\nsample 0ms x30 pid 1 [~] main;Vec<&str>::hash\nsample 40ms x10 pid 1 [~] main;io\n").unwrap(),
        );
        let view = FlameView::of_run("r1", &report, FlameTime::OnCpu, false, longpole_analysis::report::Excerpt::default());
        let picture = svg(&view, None);
        // 1180 pixels for 40 ms.
        assert!(picture.contains("x=\"10.0\" y=\"86\" width=\"885.0\""), "{picture}");
        assert!(picture.contains("x=\"895.0\" y=\"86\" width=\"295.0\""), "{picture}");
        assert!(picture.contains("<title>Vec&lt;&amp;str&gt;::hash\n30.0ms (75.0%) in total, 30.0ms self</title>"));
        assert_eq!(picture, svg(&view, None), "two pictures of one graph differ");
        let coarse = svg(&view, Some(50.0));
        assert!(!coarse.contains(">io") && coarse.contains("1 small box left out"), "{coarse}");
        assert_eq!(escaped("a\u{1b}\u{0}b"), "a\\x1b\\x00b");
    }
}
