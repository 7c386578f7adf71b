//! The development pairs that an evaluation goes through: the same ones every time.

use super::order::Batch;
use crate::random::{Keyed, Purpose};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// At most so many pairs of each bucket, chosen by the seed.
    PairsPerBucket(usize),
}

/// Batches in the order of the buckets and, inside a bucket, of the file. An empty bucket has none.
pub fn evaluation_batches(sizes: &[usize], extent: Extent, seed: u64, batch_size: usize) -> Vec<Batch> {
    let mut batches = Vec::new();
    for (bucket, size) in sizes.iter().enumerate() {
        let pairs = match extent {
            Extent::PairsPerBucket(limit) if limit < *size => subset(*size, limit, seed, bucket),
            Extent::Whole | Extent::PairsPerBucket(_) => (0..*size as u32).collect(),
        };
        batches.extend(pairs.chunks(batch_size).map(|pairs| Batch { bucket, pairs: pairs.to_vec() }));
    }
    batches
}

fn subset(size: usize, limit: usize, seed: u64, bucket: usize) -> Vec<u32> {
    let mut pairs: Vec<u32> = (0..size as u32).collect();
    Keyed::new(seed, Purpose::EvaluationSubset, bucket as u64, 0).shuffle(&mut pairs);
    pairs.truncate(limit);
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_set_is_taken_in_file_order_with_its_short_batches() {
        let batches = evaluation_batches(&[5, 0, 2], Extent::Whole, 1, 3);
        let expected = [(0, vec![0, 1, 2]), (0, vec![3, 4]), (2, vec![0, 1])];
        assert_eq!(batches, expected.map(|(bucket, pairs)| Batch { bucket, pairs }));
    }

    #[test]
    fn a_subset_is_fixed_by_the_seed_and_stays_in_file_order() {
        let pairs = |seed| {
            let batches = evaluation_batches(&[1000, 10], Extent::PairsPerBucket(100), seed, 32);
            assert_eq!(batches.iter().map(|batch| batch.pairs.len()).collect::<Vec<_>>(), [32, 32, 32, 4, 10]);
            let pairs: Vec<u32> =
                batches.iter().filter(|batch| batch.bucket == 0).flat_map(|batch| batch.pairs.clone()).collect();
            assert!(pairs.is_sorted_by(|a, b| a < b));
            pairs
        };
        assert_eq!(pairs(1), pairs(1));
        assert_ne!(pairs(1), pairs(2));
    }
}
