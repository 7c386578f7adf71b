//! Which pairs make up the batch of a step: a function of the seed and the step alone.
//!
//! An epoch is the list of all its batches: each bucket's permutation cut into batches (the last one short), the list
//! shuffled. So every pair is used once per epoch, and an epoch has `sum of ceil(n / B)` steps. Steps count from 0.

use crate::random::{Keyed, Purpose};

/// Pairs of one bucket, by their place in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub bucket: usize,
    pub pairs: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Drawing {
    #[default]
    OncePerEpoch,
    /// As the translate program always did: a bucket in proportion to its pairs, then any of them, perhaps again.
    WithReplacement,
}

#[derive(Debug, Clone)]
pub struct Order {
    seed: u64,
    batch_size: usize,
    /// Pairs of each bucket.
    sizes: Vec<usize>,
    drawing: Drawing,
    /// The epoch asked for last.
    cached: Option<Epoch>,
}

#[derive(Debug, Clone)]
struct Epoch {
    number: u64,
    permutations: Vec<Vec<u32>>,
    /// Bucket and first place in its permutation.
    batches: Vec<(u32, u32)>,
}

impl Order {
    /// At least one pair in all, and a batch size of at least 1, are the caller's to see to.
    pub fn new(seed: u64, batch_size: usize, sizes: Vec<usize>, drawing: Drawing) -> Self {
        assert!(batch_size > 0, "a batch holds at least one pair");
        assert!(sizes.iter().any(|size| *size > 0), "an order needs pairs");
        assert!(sizes.iter().all(|size| u32::try_from(*size).is_ok()), "a bucket holds less than 2^32 pairs");
        Self { seed, batch_size, sizes, drawing, cached: None }
    }

    pub fn steps_per_epoch(&self) -> u64 {
        self.sizes.iter().map(|size| size.div_ceil(self.batch_size) as u64).sum()
    }

    /// The epoch of a step, from 0.
    pub fn epoch_of(&self, step: u64) -> u64 {
        step / self.steps_per_epoch()
    }

    /// Only the speed of this depends on earlier calls.
    pub fn batch_of(&mut self, step: u64) -> Batch {
        match self.drawing {
            Drawing::OncePerEpoch => self.batch_of_epoch(self.epoch_of(step), step % self.steps_per_epoch()),
            Drawing::WithReplacement => self.drawn_batch(step),
        }
    }

    fn batch_of_epoch(&mut self, number: u64, place: u64) -> Batch {
        let epoch = match self.cached.take() {
            Some(epoch) if epoch.number == number => epoch,
            _ => self.epoch(number),
        };
        let (bucket, start) = epoch.batches[place as usize];
        let (bucket, start) = (bucket as usize, start as usize);
        let permutation = &epoch.permutations[bucket];
        let end = permutation.len().min(start + self.batch_size);
        let pairs = permutation[start..end].to_vec();
        self.cached = Some(epoch);
        Batch { bucket, pairs }
    }

    fn epoch(&self, number: u64) -> Epoch {
        let mut permutations = Vec::with_capacity(self.sizes.len());
        let mut batches = Vec::new();
        for (bucket, size) in (0u32..).zip(&self.sizes) {
            let mut permutation: Vec<u32> = (0..*size as u32).collect();
            Keyed::new(self.seed, Purpose::Permutation, number, u64::from(bucket)).shuffle(&mut permutation);
            batches.extend((0..*size).step_by(self.batch_size).map(|start| (bucket, start as u32)));
            permutations.push(permutation);
        }
        Keyed::new(self.seed, Purpose::BatchOrder, number, 0).shuffle(&mut batches);
        Epoch { number, permutations, batches }
    }

    fn drawn_batch(&self, step: u64) -> Batch {
        let random = Keyed::new(self.seed, Purpose::Replacement, step, 0);
        let total: usize = self.sizes.iter().sum();
        let mut pair = random.below(0, total as u64) as usize;
        let mut bucket = 0;
        while pair >= self.sizes[bucket] {
            pair -= self.sizes[bucket];
            bucket += 1;
        }
        let size = self.sizes[bucket] as u64;
        let pairs = (1..=self.batch_size as u64).map(|draw| random.below(draw, size) as u32).collect();
        Batch { bucket, pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(sizes: &[usize]) -> Order {
        Order::new(7, 4, sizes.to_vec(), Drawing::OncePerEpoch)
    }

    proptest! {
        #[test]
        fn every_epoch_uses_each_pair_exactly_once(
            sizes in prop::collection::vec(0usize..60, 1..5), batch_size in 1usize..9, seed: u64, epoch in 0u64..5,
        ) {
            prop_assume!(sizes.iter().any(|size| *size > 0));
            let mut order = Order::new(seed, batch_size, sizes.clone(), Drawing::OncePerEpoch);
            let steps = order.steps_per_epoch();
            let mut used: Vec<(usize, u32)> = Vec::new();
            for step in epoch * steps..(epoch + 1) * steps {
                let batch = order.batch_of(step);
                prop_assert!(!batch.pairs.is_empty() && batch.pairs.len() <= batch_size);
                used.extend(batch.pairs.iter().map(|pair| (batch.bucket, *pair)));
            }
            used.sort_unstable();
            let of_bucket = |(bucket, size): (usize, &usize)| (0..*size as u32).map(move |pair| (bucket, pair));
            let all: Vec<(usize, u32)> = sizes.iter().enumerate().flat_map(of_bucket).collect();
            prop_assert_eq!(used, all);
        }
    }

    #[test]
    fn a_step_has_the_same_batch_whatever_was_asked_before() {
        for drawing in [Drawing::OncePerEpoch, Drawing::WithReplacement] {
            let fresh = |step| Order::new(7, 4, vec![30, 0, 17, 43], drawing).batch_of(step);
            let mut used = Order::new(7, 4, vec![30, 0, 17, 43], drawing);
            for step in [0, 33, 34, 5, 80, 79, 0, 1_000_000_007] {
                assert_eq!(used.batch_of(step), fresh(step));
            }
        }
    }

    /// 90 samples, killed at step 33 and again in the second epoch: what is left of an epoch is what was not yet used.
    #[test]
    fn resuming_in_the_middle_of_an_epoch_neither_skips_nor_repeats() {
        let mut uninterrupted = order(&[90]);
        let steps = uninterrupted.steps_per_epoch();
        assert_eq!(steps, 23);
        let expected: Vec<Batch> = (0..3 * steps).map(|step| uninterrupted.batch_of(step)).collect();
        let mut resumed = Vec::new();
        for lived in [0..12, 12..33, 33..40, 40..3 * steps] {
            let mut order = order(&[90]);
            resumed.extend(lived.map(|step| order.batch_of(step)));
        }
        assert_eq!(resumed, expected);
    }

    #[test]
    fn epochs_seeds_and_buckets_have_orders_of_their_own() {
        let mut order = order(&[40, 40]);
        let steps = order.steps_per_epoch();
        let list =
            |order: &mut Order, from: u64| (from..from + steps).map(|step| order.batch_of(step)).collect::<Vec<_>>();
        let (first, second) = (list(&mut order, 0), list(&mut order, steps));
        assert_ne!(first, second);
        assert_ne!(first, list(&mut Order::new(8, 4, vec![40, 40], Drawing::OncePerEpoch), 0));
        let of_bucket = |bucket| first.iter().filter(move |batch| batch.bucket == bucket).map(|batch| &batch.pairs);
        assert!(of_bucket(0).ne(of_bucket(1)));
    }

    #[test]
    fn the_short_last_batch_of_a_bucket_is_kept() {
        let mut order = order(&[3, 9, 0, 4]);
        assert_eq!(order.steps_per_epoch(), 1 + 3 + 1);
        let mut lengths: Vec<(usize, usize)> =
            (0..5).map(|step| order.batch_of(step)).map(|batch| (batch.bucket, batch.pairs.len())).collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [(0, 3), (1, 1), (1, 4), (1, 4), (3, 4)]);
    }

    #[test]
    fn drawing_with_replacement_takes_buckets_in_proportion_to_their_pairs() {
        let mut order = Order::new(1, 64, vec![100, 0, 300], Drawing::WithReplacement);
        let batches: Vec<Batch> = (0..4000).map(|step| order.batch_of(step)).collect();
        assert!(batches.iter().all(|batch| batch.pairs.len() == 64));
        let of = |bucket| batches.iter().filter(|batch| batch.bucket == bucket).count();
        // Three standard deviations of a binomial distribution are 82.
        assert!(of(0).abs_diff(1000) < 82, "{}", of(0));
        assert_eq!((of(1), of(0) + of(2)), (0, 4000));
        let mut seen = vec![false; 300];
        for pair in batches.iter().filter(|batch| batch.bucket == 2).flat_map(|batch| &batch.pairs) {
            seen[*pair as usize] = true;
        }
        assert!(seen.iter().all(|seen| *seen));
    }
}
