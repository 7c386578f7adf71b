//! `--self_test`: five steps of a tiny model on fixed data; no files are read or written.

use std::process::ExitCode;

use crate::data::batch::MicroBatch;
use crate::data::buckets::{Bucket, BucketShape};
use crate::data::vocabulary::EOS;
use crate::model::translate::{Translate, TranslateConfig, Workspace};
use crate::random::{Keyed, Purpose};
use crate::train::optimizer::{clip, descend};

const BATCH: u64 = 32;
const STEPS: u64 = 5;
const RATE: f32 = 0.3;
const MAX_NORM: f64 = 5.0;

/// Fixed pairs of two buckets, as the old program had them: source and target.
fn buckets() -> [Bucket; 2] {
    let mut small = Bucket::new(BucketShape { source: 3, target: 3 });
    let mut large = Bucket::new(BucketShape { source: 6, target: 6 });
    for (line, (source, target)) in [([1, 1], [2, 2]), ([3, 3], [4, 4])].into_iter().enumerate() {
        small.push(&source, &[&target[..1], &[EOS]].concat(), line as u64);
    }
    small.push(&[5], &[6, EOS], 2);
    for (line, (source, target)) in
        [([1, 1, 1, 1, 1], [2, 2, 2, 2]), ([3, 3, 3, 3, 3], [5, 6, 5, 6])].into_iter().enumerate()
    {
        large.push(&source, &[&target[..], &[EOS]].concat(), line as u64);
    }
    [small, large]
}

pub fn run() -> ExitCode {
    println!("Self-test for neural translation model.");
    let config =
        TranslateConfig { from_vocab: 10, to_vocab: 10, size: 32, layers: 2, samples: 8, attend_to_padding: false };
    let model = Translate::new(config);
    let mut params = model.initial(0);
    let buckets = buckets();
    let mut workspace = Workspace::default();
    let random = Keyed::new(0, Purpose::Replacement, 0, 0);
    for step in 0..STEPS {
        let index = random.below(step, buckets.len() as u64) as usize;
        let bucket = &buckets[index];
        let pairs: Vec<u32> =
            (0..BATCH).map(|place| random.below(100 + step * BATCH + place, bucket.len() as u64) as u32).collect();
        let batch = MicroBatch::build(index, bucket, &pairs);
        let prepared = model.prepare(&params);
        let negatives = model.negatives(0, step, batch.target_len);
        let (mut gradient, sums) = model.gradient(&params, &prepared, &batch, &negatives, &mut workspace);
        gradient.scale(1.0 / sums.samples as f32);
        let norm = clip(model.layout(), &mut gradient, MAX_NORM);
        if !sums.loss.is_finite() || !norm.is_finite() {
            eprintln!("error: self-test: loss {} and gradient norm {norm} at step {step}", sums.loss);
            return ExitCode::from(1);
        }
        descend(&mut params, &gradient, RATE);
    }
    ExitCode::SUCCESS
}
