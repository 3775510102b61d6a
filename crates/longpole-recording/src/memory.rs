//! Whether a recording fits into memory, asked before it is read: the kernel ends whoever takes too much, and others with them.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use longpole_model::{Attribute, AttributeValue, Attributes, Span, SpanEvent};

/// What a span takes while a recording is read and reported on: 433 to 547 bytes measured with three attributes (400,000 spans in traces
/// of ten, and in one trace).
const SPAN_BYTES: u64 = 550;

/// The same of a sample: itself, its link, its places in the indexes.
const SAMPLE_BYTES: u64 = 150;

/// What a report of so much takes, about.
pub(crate) fn needed_bytes(spans: u64, samples: u64) -> u64 {
    spans.saturating_mul(SPAN_BYTES).saturating_add(samples.saturating_mul(SAMPLE_BYTES))
}

/// What a report takes for each span beside the rows of its recording: 250 bytes measured, with three attributes and with twelve.
const REPORT_SPAN_BYTES: u64 = 300;

/// What a recording and its report take, where its rows take `row_bytes`, about. It is counted for whoever shares memory with others, and therefore
/// rather too much than too little.
pub(crate) fn held_bytes(spans: u64, samples: u64, row_bytes: u64) -> u64 {
    let of_rows = row_bytes.saturating_add(report_bytes(spans)).saturating_add(samples.saturating_mul(SAMPLE_BYTES));
    of_rows.max(needed_bytes(spans, samples))
}

/// What the report of this number of spans takes beside them.
pub(crate) fn report_bytes(spans: u64) -> u64 {
    spans.saturating_mul(REPORT_SPAN_BYTES)
}

/// What a view takes for each span while it is made: that of the long poles replays the run, with 110 bytes measured for each.
const VIEW_SPAN_BYTES: u64 = 150;

/// What a view of this number of spans takes for a moment.
pub fn view_bytes(spans: u64) -> u64 {
    spans.saturating_mul(VIEW_SPAN_BYTES)
}

/// Texts up to here count with their spans.
const SHORT_TEXT_BYTES: usize = 256;

/// What the long texts of spans take where nothing is shared. Rows share their texts; a report and its views copy each some times at most, and a
/// sender may have one name of 60 KB for a hundred thousand spans.
pub fn long_text_bytes(spans: &[Span]) -> u64 {
    let mut resources: HashSet<usize> = HashSet::new();
    let of_span = |span: &Span| {
        let names = [span.name.as_str(), span.service_name(), &span.scope.name, &span.status.message, &span.trace_state];
        let of_event = |event: &SpanEvent| long(&event.name).saturating_add(of_attributes(&event.attributes));
        // Its name and its host are copied for each resource.
        let is_new = resources.insert(Arc::as_ptr(&span.resource) as usize);
        let of_resource = if is_new { of_attributes(&span.resource.attributes).saturating_mul(2) } else { 0 };
        let of_all = [of_attributes(&span.attributes), of_resource];
        let parts = names.into_iter().map(long).chain(of_all).chain(span.events.iter().map(of_event));
        parts.fold(0, u64::saturating_add)
    };
    spans.iter().map(of_span).fold(0, u64::saturating_add)
}

fn long(text: &str) -> u64 {
    if text.len() > SHORT_TEXT_BYTES { text.len() as u64 } else { 0 }
}

fn of_attributes(attributes: &Attributes) -> u64 {
    attributes.iter().map(|attribute| long(&attribute.key).saturating_add(of_value(&attribute.value))).fold(0, u64::saturating_add)
}

/// Lists are walked without recursion: they may be deep.
fn of_value(value: &AttributeValue) -> u64 {
    let (mut bytes, mut waiting) = (0u64, vec![value]);
    while let Some(value) = waiting.pop() {
        bytes = bytes.saturating_add(match value {
            AttributeValue::Str(text) => long(text),
            AttributeValue::Bytes(bytes) => bytes.len() as u64,
            AttributeValue::Array(values) => {
                waiting.extend(values.iter());
                (values.len() * size_of::<AttributeValue>()) as u64
            }
            AttributeValue::KeyValues(pairs) => {
                waiting.extend(pairs.iter().map(|pair| &pair.value));
                (pairs.len() * size_of::<Attribute>()) as u64
            }
            AttributeValue::Empty | AttributeValue::Bool(_) | AttributeValue::Int(_) | AttributeValue::Double(_) => 0,
        });
    }
    bytes
}

/// Packed bytes of a span without long texts. Whatever it takes beyond these are texts of its own: a statement, a payload.
const PACKED_SPAN_BYTES: u64 = 300;

/// Bytes that a log takes in memory beside its packed spans, which take `packed_bytes`: their long texts are there a second time.
pub(crate) fn needed_by_log(spans: u64, samples: u64, packed_bytes: u64) -> u64 {
    needed_bytes(spans, samples).saturating_add(packed_bytes.saturating_sub(spans.saturating_mul(PACKED_SPAN_BYTES)))
}

/// What this process can still have: of the machine, with what can be swapped out, and of its control group.
pub(crate) fn available_bytes() -> Option<u64> {
    let machine = machine(&fs::read_to_string("/proc/meminfo").ok()?)?;
    let group = fs::read_to_string("/proc/self/cgroup").ok().and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::/"))?.to_owned();
        let root = Path::new("/sys/fs/cgroup");
        // The limit of any group above holds as well. In a container the path may be one of the machine's, and the root is its own.
        root.join(path).ancestors().take_while(|folder| folder.starts_with(root)).filter_map(of_group).min()
    });
    Some(group.map_or(machine, |group| group.min(machine)))
}

/// `MemAvailable` and `SwapFree` of `/proc/meminfo`.
fn machine(text: &str) -> Option<u64> {
    let kilobytes = |key: &str| text.lines().find_map(|line| line.strip_prefix(key))?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok();
    Some((kilobytes("MemAvailable:")? + kilobytes("SwapFree:").unwrap_or_default()).saturating_mul(1024))
}

/// Resident bytes that this process should not exceed: what it has now, and half of what is free.
pub fn most_resident_bytes() -> Option<u64> {
    Some(resident_bytes()?.saturating_add(available_bytes()? / 2))
}

/// Whether this process has grown by more than half of what is free now.
pub(crate) fn growth_limit() -> impl Fn() -> bool {
    let most = most_resident_bytes();
    move || resident_bytes().zip(most).is_some_and(|(now, most)| now > most)
}

/// `VmRSS` of `/proc/self/status`, as the recorder measures it.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// What a control group may still take; `None` where it has no limit.
fn of_group(folder: &Path) -> Option<u64> {
    let number = |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

/// Bytes for people.
pub(crate) fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1_u64 << 30) as f64)
}

#[cfg(test)]
mod tests {
    use longpole_model::{Resource, text};

    use super::*;

    #[test]
    fn long_texts_count_as_often_as_spans_have_them_and_short_ones_with_their_spans() {
        let span = text::parse("run 0..1ms\n  a 0..1ms").unwrap().spans.remove(0);
        assert_eq!(long_text_bytes(&vec![span.clone(); 1_000]), 0);
        let named = Span { name: "x".repeat(60_000).into(), ..span.clone() };
        assert_eq!(long_text_bytes(&vec![named; 1_000]), 60_000_000);
        let mut resource = Resource::default();
        resource.attributes.push("service.name", AttributeValue::Str("s".repeat(16_000).into()));
        let of_service = Span { resource: Arc::new(resource), ..span.clone() };
        assert_eq!(long_text_bytes(&vec![of_service; 10]), 160_000 + 2 * 16_000, "and twice for its resource");
        let mut with_list = span;
        with_list.attributes.push("list", AttributeValue::Array(vec![AttributeValue::Bool(true); 1_000].into()));
        assert_eq!(long_text_bytes(&[with_list]), 1_000 * size_of::<AttributeValue>() as u64);
    }

    #[test]
    fn the_machine_says_what_is_free() {
        let text = "MemTotal:       24000000 kB\nMemFree:         1000000 kB\nMemAvailable:    3000000 kB\nSwapFree:        1000000 kB\n";
        assert_eq!(machine(text), Some(4_096_000_000));
        assert!(available_bytes().unwrap() > 0);
        assert_eq!(gibibytes(needed_bytes(12_800_000, 0)), "6.6 GiB");
        assert_eq!(needed_by_log(12_800_000, 0, 12_800_000 * 150), needed_bytes(12_800_000, 0), "ordinary spans");
        // A statement of 65 KB in each, all different.
        assert_eq!(gibibytes(needed_by_log(20_000, 0, 20_000 * 65_500)), "1.2 GiB");
        assert_eq!(needed_by_log(u64::MAX, u64::MAX, u64::MAX), u64::MAX);
    }
}
