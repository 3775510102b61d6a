//! The weight of a sample: the time on a CPU that it stands for.

use crate::perf::options::SampleClock;

/// Weighs samples, in nanoseconds.
pub(super) struct Weigher {
    clock: SampleClock,
    rate_hz: u32,
    /// The usual number of cycles between samples.
    usual_cycles: u64,
}

impl Weigher {
    pub(super) fn new(clock: SampleClock, rate_hz: u32) -> Weigher {
        // A processor has at least a thousand million cycles a second.
        Weigher { clock, rate_hz, usual_cycles: 1_000_000_000 / u64::from(rate_hz.max(1)) }
    }

    pub(super) fn weigh(&mut self, period: u64) -> u64 {
        let nominal = 1_000_000_000 / u64::from(self.rate_hz.max(1));
        match self.clock {
            SampleClock::CpuClock => period,
            // The kernel starts each thread at a period of one cycle and reaches the requested rate within some samples; those first ones
            // stand for next to nothing. After that each stands for its share of a second.
            SampleClock::Cycles => {
                let weight = if period >= self.usual_cycles {
                    nominal
                } else {
                    (u128::from(nominal) * u128::from(period) / u128::from(self.usual_cycles)) as u64
                };
                if period > self.usual_cycles / 4 {
                    self.usual_cycles = (self.usual_cycles / 8 * 7).saturating_add(period / 8).max(1);
                }
                weight
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_the_cpu_clock_weighs_its_period() {
        assert_eq!(Weigher::new(SampleClock::CpuClock, 999).weigh(1_001_001), 1_001_001);
    }

    #[test]
    fn samples_by_cycles_weigh_little_until_the_period_is_settled() {
        let mut weigher = Weigher::new(SampleClock::Cycles, 1_000);
        assert!(weigher.weigh(1) < 10);
        assert!(weigher.weigh(50_000) < 100_000);
        for _ in 0..100 {
            assert_eq!(weigher.weigh(3_000_000), 1_000_000);
        }
        assert!(weigher.weigh(300_000).abs_diff(100_000) < 2_000);
    }
}
