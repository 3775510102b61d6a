//! A loss or note with its count, in words.

use longpole_model::units::{count, counted};

/// Losses that are parts of the samples.
const OF_SAMPLES: [&str; 3] = ["stacks_truncated", "stacks_unwind_failed", "context_torn"];

/// Its waits are called as the states of spans call them.
const WAITS_NOT_SEEN: &str = "waits_not_seen";

/// What is missing, how often, and the detail: `orphans ×3: spans whose parent is not in the recording`. `samples` is the number of all.
pub fn loss(code: &str, times: u64, detail: &str, samples: u64) -> String {
    let mut words = if code == WAITS_NOT_SEEN { "waits not sampled".to_owned() } else { code.replace('_', " ") };
    let mut before_detail = ": ";
    if OF_SAMPLES.contains(&code) {
        words += &format!(": {} of {}", count(times), counted(samples, "sample", "samples"));
        before_detail = ", ";
    } else if times > 1 {
        words += &format!(" ×{}", count(times));
    }
    if !detail.is_empty() {
        words += before_detail;
        words += detail;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_has_its_count_unless_it_is_one() {
        assert_eq!(loss("wal_torn", 1, "", 0), "wal torn");
        assert_eq!(loss("orphans", 1, "no parent", 0), "orphans: no parent");
        assert_eq!(loss("waits_not_seen", 2, "short", 0), "waits not sampled ×2: short");
        assert_eq!(loss("orphans", 1_234, "no parent", 0), "orphans ×1 234: no parent");
        assert_eq!(loss("context_torn", 2, "", 1), "context torn: 2 of 1 sample");
        assert_eq!(loss("stacks_truncated", 2, "deep", 9), "stacks truncated: 2 of 9 samples, deep");
    }
}
