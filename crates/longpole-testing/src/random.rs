//! Random numbers from a seed, so that every failure can be run again.

/// SplitMix64 (Steele, Lea, Flood 2014): small, and any seed is a good one.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    #[allow(clippy::should_implement_trait, reason = "it never ends, so no iterator is of use")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % (end as u64).max(1)).unwrap_or_default()
    }

    /// True once in `of` calls on average.
    pub fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first numbers of seed 1234567, as other implementations have them.
        let mut random = Random(1_234_567);
        let first = [random.next(), random.next(), random.next()];
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert_eq!(random.below(0), 0);
    }
}
