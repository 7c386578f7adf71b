//! Loss on the development pairs: full softmax over a fixed subset or the whole set, split over the ranks.

use crate::collective::{Collective, CollectiveError};
use crate::data::batch::MicroBatch;
use crate::data::evaluation::{Extent, evaluation_batches};
use crate::data::order::{Drawing, Order};
use crate::data::pairs::Pairs;
use crate::model::translate::{Prepared, Translate, Workspace};
use crate::train::params::Params;

/// Rows of one evaluation batch: fixed, so that sums do not depend on the number of ranks.
const ROWS: usize = 64;

/// Mean loss of each bucket; nothing for an empty one.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    pub buckets: Vec<Option<f64>>,
    /// Mean over all pairs.
    pub mean: Option<f64>,
    pub pairs: u64,
}

/// A model with the weights of one step.
#[derive(Clone, Copy)]
pub struct Weights<'a> {
    pub model: &'a Translate,
    pub params: &'a Params,
    pub prepared: &'a Prepared,
}

/// Each rank takes every N-th batch; the sums of the batches are gathered and added in batch order on every rank, so
/// that any number of ranks gives the same bits.
pub fn evaluate(
    weights: Weights<'_>,
    dev: &Pairs,
    extent: Extent,
    seed: u64,
    collective: &mut dyn Collective,
    workspace: &mut Workspace,
) -> Result<Evaluation, CollectiveError> {
    let Weights { model, params, prepared } = weights;
    let batches = evaluation_batches(&dev.sizes(), extent, seed, ROWS);
    let (rank, world_size) = (collective.rank() as usize, collective.world_size() as usize);
    let mut own = Vec::new();
    for batch in batches.iter().skip(rank).step_by(world_size) {
        let input = MicroBatch::build(batch.bucket, &dev.buckets[batch.bucket], &batch.pairs);
        let sum: f64 = model.losses(params, prepared, &input, workspace).iter().sum();
        own.extend_from_slice(&sum.to_le_bytes());
    }
    let gathered = collective.gather(own)?;
    let mut sums = vec![(0.0f64, 0u64); dev.buckets.len()];
    for (index, batch) in batches.iter().enumerate() {
        let at = index / world_size * 8;
        let bytes = gathered[index % world_size]
            .get(at..at + 8)
            .ok_or(CollectiveError::Malformed { rank: (index % world_size) as u32, what: "evaluation sums" })?;
        let (loss, pairs) = &mut sums[batch.bucket];
        *loss += f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        *pairs += batch.pairs.len() as u64;
    }
    Ok(means(&sums))
}

/// As the old program did: one random batch of each bucket, with the training loss. On every rank alike.
pub fn evaluate_old(
    weights: Weights<'_>,
    dev: &Pairs,
    seed: u64,
    step: u64,
    batch_size: usize,
    workspace: &mut Workspace,
) -> Evaluation {
    let Weights { model, params, prepared } = weights;
    let mut sums = vec![(0.0, 0); dev.buckets.len()];
    for (bucket, pairs) in dev.buckets.iter().enumerate().filter(|(_, pairs)| !pairs.is_empty()) {
        let mut only = vec![0; dev.buckets.len()];
        only[bucket] = pairs.len();
        let batch = Order::new(seed, batch_size, only, Drawing::WithReplacement).batch_of(step);
        let input = MicroBatch::build(bucket, pairs, &batch.pairs);
        let negatives = model.negatives(seed, step, input.target_len);
        let losses = model.training_losses(params, prepared, &input, &negatives, workspace);
        sums[bucket] = (losses.iter().sum(), losses.len() as u64);
    }
    means(&sums)
}

fn means(sums: &[(f64, u64)]) -> Evaluation {
    let mean = |(loss, pairs): (f64, u64)| (pairs > 0).then(|| loss / pairs as f64);
    let total = sums.iter().fold((0.0, 0), |total, sum| (total.0 + sum.0, total.1 + sum.1));
    Evaluation { buckets: sums.iter().copied().map(mean).collect(), mean: mean(total), pairs: total.1 }
}
