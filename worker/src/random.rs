//! Counter-based random numbers: a value is a function of its key and its index, never of what was drawn before.
//!
//! Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

/// What a number is drawn for. Each purpose is its own family, so no two uses share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    Initial = 1,
    Permutation = 2,
    BatchOrder = 3,
    Negatives = 4,
    EvaluationSubset = 5,
    Split = 6,
    Replacement = 7,
}

/// A family of numbers fixed by (seed, purpose, a, b); `at(i)` gives the i-th block of four.
#[derive(Debug, Clone, Copy)]
pub struct Keyed {
    key: [u32; 2],
    high: [u32; 2],
}

impl Keyed {
    /// `a` and `b` tell families of one purpose apart: epoch and bucket, step and position, and so on.
    pub fn new(seed: u64, purpose: Purpose, a: u64, b: u64) -> Self {
        // The four words that name the family are mixed by one Philox call under the seed; the counter stays free.
        let seed = [seed as u32, (seed >> 32) as u32];
        let first = philox([a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32], seed);
        let second = philox([first[0], first[1], first[2] ^ purpose as u32, first[3]], seed);
        Self { key: [second[0], second[1]], high: [second[2], second[3]] }
    }

    pub fn at(&self, index: u64) -> [u32; 4] {
        philox([index as u32, (index >> 32) as u32, self.high[0], self.high[1]], self.key)
    }

    /// The `index`-th 64-bit number of the family.
    pub fn u64(&self, index: u64) -> u64 {
        let block = self.at(index / 2);
        let pair = if index.is_multiple_of(2) { [block[0], block[1]] } else { [block[2], block[3]] };
        u64::from(pair[0]) | u64::from(pair[1]) << 32
    }

    /// Uniform in [0, 1) with 53 bits.
    pub fn unit_f64(&self, index: u64) -> f64 {
        (self.u64(index) >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [0, 1) with 24 bits.
    pub fn unit_f32(&self, index: u64) -> f32 {
        (self.at(index / 4)[(index % 4) as usize] >> 8) as f32 * (1.0 / (1u32 << 24) as f32)
    }

    /// Uniform in 0..bound by multiplication; the bias is below bound / 2^64.
    pub fn below(&self, index: u64, bound: u64) -> u64 {
        ((u128::from(self.u64(index)) * u128::from(bound)) >> 64) as u64
    }

    /// Fisher-Yates over `items`.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64, last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * 0xD251_1F53;
        let b = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [(b >> 32) as u32 ^ counter[1] ^ key[0], b as u32, (a >> 32) as u32 ^ counter[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution (`kat_vectors`, philox4x32 10).
    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox([u32::MAX; 4], [u32::MAX; 2]), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        assert_eq!(
            philox([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
            [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]
        );
    }

    #[test]
    fn a_shuffle_is_a_permutation_and_differs_by_key() {
        let mut first: Vec<u32> = (0..100).collect();
        let mut second = first.clone();
        Keyed::new(1, Purpose::Permutation, 0, 0).shuffle(&mut first);
        Keyed::new(1, Purpose::Permutation, 1, 0).shuffle(&mut second);
        assert_ne!(first, second);
        first.sort_unstable();
        assert_eq!(first, (0..100).collect::<Vec<_>>());
    }
}
