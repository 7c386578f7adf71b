//! How much memory a run takes at least, before any of it is taken.

use std::ops::Range;

use coord_common::size::bytes;
use thiserror::Error;

use super::error::TrainError;
use crate::data::buckets::TRANSLATE_BUCKETS;
use crate::model::translate::{Translate, TranslateConfig};
use crate::train::params::ParamSpec;

/// An `f32`.
const VALUE: u64 = 4;

/// Values of a GRU layer for each position, in units of `size`: states, two gates, reset states, candidates; gradients
/// of gates and candidates.
const LAYER_VALUES: u64 = 8;
/// The same for all else at a position of the encoder: embedded words, keys, and their gradients.
const ENCODER_VALUES: u64 = 4;
/// And of the decoder: embedded words, inputs, queries, contexts, outputs, and their gradients.
const DECODER_VALUES: u64 = 11;

/// A rank's part of a run.
#[derive(Debug, Clone)]
pub struct Part {
    pub batch_size: usize,
    pub micro_batches: u32,
    /// Micro-batches of this rank.
    pub owned: Range<u32>,
    /// Rank 0 saves checkpoints.
    pub master: bool,
}

/// A run that cannot fit, with what a user can make smaller.
#[derive(Debug, Error)]
#[error(
    "training needs at least {} of memory, {} are available: from_vocab_size {}, to_vocab_size {}, size {}, \
     num_layers {}, batch_size {batch_size}; largest tensor {} {:?}, {}",
    bytes(*needed), bytes(*available), model.from_vocab, model.to_vocab, model.size, model.layers,
    largest.name, largest.shape, bytes(VALUE * largest.elements() as u64)
)]
pub struct Shortage {
    needed: u64,
    available: u64,
    model: TranslateConfig,
    batch_size: usize,
    largest: ParamSpec,
}

/// Bytes, by what they hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    pub weights: u64,
    /// The same weights in the form that the products read.
    pub packed: u64,
    /// One for each micro-batch.
    pub gradients: u64,
    /// For a batch of the smallest bucket.
    pub activations: u64,
    /// A copy of the weights on its way to storage, and its encoding.
    pub snapshot: u64,
}

impl Estimate {
    /// Never more than a run takes: a batch of a larger bucket takes more.
    pub fn of(model: &Translate, part: &Part) -> Self {
        let (config, layout) = (model.config(), model.layout());
        let (all, dense) = (layout.total() as u64, layout.dense_total() as u64);
        // Weight and bias.
        let projection = config.to_vocab as u64 * (config.size as u64 + 1);
        let recurrent = if config.is_sampled() { dense } else { dense - projection };
        let owned = u64::from(part.owned.end - part.owned.start);
        let rows = part.batch_size as u64 * owned / u64::from(part.micro_batches);
        Self {
            weights: VALUE * all,
            packed: VALUE * (2 * recurrent + projection),
            gradients: VALUE * dense * owned,
            activations: VALUE * rows * values_of_a_row(config),
            snapshot: if part.master { 2 * VALUE * all } else { 0 },
        }
    }

    pub fn total(&self) -> u64 {
        self.weights + self.packed + self.gradients + self.activations + self.snapshot
    }

    /// An error if less than this is `available`.
    pub fn check(&self, model: &Translate, batch_size: usize, available: Option<u64>) -> Result<(), TrainError> {
        let needed = self.total();
        let Some(available) = available.filter(|available| *available < needed) else {
            return Ok(());
        };
        let largest = model.layout().specs().iter().max_by_key(|spec| spec.elements());
        let largest = largest.expect("every model has parameters");
        let (model, largest) = (model.config().clone(), largest.clone());
        Err(TrainError::Memory(Box::new(Shortage { needed, available, model, batch_size, largest })))
    }
}

fn values_of_a_row(config: &TranslateConfig) -> u64 {
    let shape = TRANSLATE_BUCKETS[0];
    let layers = LAYER_VALUES * config.layers as u64;
    let encoder = shape.source as u64 * (layers + ENCODER_VALUES);
    let decoder = shape.target as u64 * (layers + DECODER_VALUES);
    config.size as u64 * (encoder + decoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(vocabulary: usize, size: usize, samples: usize) -> Translate {
        Translate::new(TranslateConfig {
            from_vocab: vocabulary,
            to_vocab: vocabulary,
            size,
            layers: 3,
            samples,
            attend_to_padding: false,
        })
    }

    fn part(master: bool) -> Part {
        Part { batch_size: 64, micro_batches: 8, owned: 0..8, master }
    }

    /// SEQ-12.
    #[test]
    fn two_hundred_thousand_words_do_not_fit_into_a_gibibyte() {
        let model = model(200_000, 1024, 512);
        let estimate = Estimate::of(&model, &part(true));
        let error = estimate.check(&model, 64, Some(1 << 30)).unwrap_err().to_string();
        for word in ["200000", "size 1024", "batch_size 64", "projection.weight [200000, 1024], 781.2 MiB", "1.0 GiB"] {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
        assert!(estimate.check(&model, 64, Some(estimate.total())).is_ok());
        assert!(estimate.check(&model, 64, None).is_ok());
    }

    #[test]
    fn a_rank_needs_memory_for_its_own_share() {
        let model = model(5_000, 256, 512);
        let whole = Estimate::of(&model, &part(true));
        let half = Estimate::of(&model, &Part { owned: 4..8, ..part(false) });
        assert_eq!(half.activations * 2, whole.activations);
        assert_eq!((half.snapshot, whole.snapshot), (0, whole.weights * 2));
        assert!(half.gradients < whole.gradients);
    }

    #[test]
    fn the_full_softmax_has_a_gradient_for_every_word() {
        let (sampled, full) = (model(5_000, 256, 512), model(5_000, 256, 0));
        let (sampled, full) = (Estimate::of(&sampled, &part(true)), Estimate::of(&full, &part(true)));
        assert_eq!(full.packed, sampled.packed);
        assert_eq!(full.gradients - sampled.gradients, 8 * 4 * (5_000 * 256 + 5_000));
    }
}
