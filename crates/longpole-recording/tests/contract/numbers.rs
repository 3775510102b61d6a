//! Numbers, and what `longpole_model::units` writes of them.

use longpole_model::units;
use serde_json::json;

/// Numbers at which a unit or a rounding changes, and some between, up to a week in nanoseconds.
fn numbers() -> Vec<i64> {
    let mut numbers = vec![0];
    for power in 0..15 {
        let one = 10_i64.pow(power);
        numbers.extend([one, 2 * one - 1, one * 5 / 4, one * 5 / 2, one * 999 / 200, one * 777 / 100, one * 1_999 / 200]);
    }
    let seconds = [30, 59, 60, 61, 119, 3_599, 3_600, 5_999, 6_000, 9_612, 86_399, 86_400, 359_999, 360_000, 446_400];
    for nanos in seconds.map(|seconds| seconds * 1_000_000_000) {
        numbers.extend([nanos - 500_000_000, nanos - 50_000_000, nanos - 1, nanos, nanos + 49_999_999, nanos + 940_000_000]);
    }
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// JSON: each number with its text, for every kind of number.
pub(crate) fn examples() -> String {
    let numbers = numbers();
    let unsigned = || numbers.iter().filter_map(|number| u64::try_from(*number).ok());
    let shares = [0, 1, 4, 5, 6, 125, 135, 394, 395, 500, 994, 995, 999, 1_000].map(|part| json!([part, units::percent(part, 1_000)]));
    let lines = |name: &str, rows: Vec<serde_json::Value>| {
        let rows: Vec<String> = rows.iter().map(|row| format!("    {}", row.to_string().replacen(',', ", ", 1))).collect();
        format!("  \"{name}\": [\n{}\n  ]", rows.join(",\n"))
    };
    let parts = [
        lines("durations", numbers.iter().flat_map(|n| [*n, -*n]).map(|n| json!([n, units::duration(n)])).collect()),
        lines("counts", unsigned().map(|n| json!([n, units::count(n)])).collect()),
        lines("bytes", unsigned().map(|n| json!([n, units::bytes(n)])).collect()),
        lines("per_mille", shares.to_vec()),
    ];
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}
