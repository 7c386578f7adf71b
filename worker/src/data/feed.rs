//! The training pairs as micro-batches by (step, micro-batch): the same for any replica that asks.

use super::batch::MicroBatch;
use super::micro_batch::places_of;
use super::order::{Drawing, Order};
use super::pairs::Pairs;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedSettings {
    pub seed: u64,
    /// Pairs of a step, over all replicas.
    pub batch_size: usize,
    pub micro_batches: usize,
    pub drawing: Drawing,
}

#[derive(Debug, Clone)]
pub struct Feed {
    pairs: Pairs,
    order: Order,
    settings: FeedSettings,
}

impl Feed {
    /// `pairs` that passed `Pairs::for_training`.
    pub fn new(pairs: Pairs, settings: FeedSettings) -> Self {
        assert!(settings.micro_batches > 0, "a step has at least one micro-batch");
        let order = Order::new(settings.seed, settings.batch_size, pairs.sizes(), settings.drawing);
        Self { pairs, order, settings }
    }

    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    pub fn steps_per_epoch(&self) -> u64 {
        self.order.steps_per_epoch()
    }

    /// Steps and epochs count from 0.
    pub fn epoch_of(&self, step: u64) -> u64 {
        self.order.epoch_of(step)
    }

    /// Without rows where the step has no pair for this micro-batch.
    pub fn micro_batch(&mut self, step: u64, micro: usize) -> MicroBatch {
        let batch = self.order.batch_of(step);
        let FeedSettings { batch_size, micro_batches, .. } = self.settings;
        let places = places_of(micro, micro_batches, batch_size, batch.pairs.len());
        MicroBatch::build(batch.bucket, &self.pairs.buckets[batch.bucket], &batch.pairs[places])
    }
}
