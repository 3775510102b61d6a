//! What a sample stands for.
//!
//! Points lie on the bytes that a program allocates, one in `rate` bytes on average and each independent of the others: a Poisson process. A block
//! is sampled if a point lies on it, so one of `s` bytes with probability `p = 1 − exp(−s / rate)`, and it stands for `1 / p` blocks of its size:
//!
//! ```text
//!  rate 512 KiB      size       p        blocks     bytes
//!                    64 B       0.000122   8,192.5   524,320
//!                    512 KiB    0.632         1.58    829,411
//!                    8 MiB      1.000         1.00  8,388,609
//! ```
//!
//! That makes sums unbiased, whatever the sizes. The method is tcmalloc's (its page on sampling) and that of `scaleHeapSample` in Go's
//! `runtime/pprof`, which scales the mean of a row; here each sample has its own weight.

/// Blocks that a sampled one of this size stands for.
pub(crate) fn objects(bytes: usize, rate: u64) -> f64 {
    // exp_m1 keeps the digits of small blocks, where 1 − exp(−x) would lose them.
    let probability = -(-(bytes.max(1) as f64) / rate.max(1) as f64).exp_m1();
    1.0 / probability
}

/// Bytes from one point to the next: the block that reaches beyond them is sampled. `random` are 64 random bits.
pub(super) fn gap(random: u64, rate: u64) -> i64 {
    // Above zero, so that the logarithm is finite, and at most 1: 53 bits.
    let uniform = ((random >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    // Rounded down: an integer size is larger than the rounded gap exactly if it is larger than the gap. A cast saturates.
    (-uniform.ln() * rate as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 512 << 10;

    #[test]
    fn a_sample_stands_for_the_blocks_of_its_size() {
        let bytes = |size: usize| (objects(size, RATE) * size as f64).round();
        assert!((objects(64, RATE) - 8_192.5).abs() < 0.001);
        assert_eq!([bytes(64), bytes(512 << 10), bytes(8 << 20)], [524_320.0, 829_411.0, 8_388_609.0]);
        assert_eq!(objects(100, 1), 1.0);
        assert!(objects(0, 0).is_finite());
    }

    #[test]
    fn gaps_have_the_mean_of_the_rate_and_the_variance_of_its_square() {
        let mut random = 1_u64;
        let gaps: Vec<f64> = (0..200_000)
            .map(|_| {
                // Weyl's sequence is even enough for a mean.
                random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                gap(random, RATE) as f64
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / RATE as f64 - 1.0).abs() < 0.01, "{mean}");
        assert!((deviation / RATE as f64 - 1.0).abs() < 0.01, "{deviation}");
        assert_eq!(gap(u64::MAX, RATE), 0);
        assert!(gap(0, u64::MAX) > 0);
    }
}
