//! The numeric class of this process: a hash over a fixed piece of training.
//!
//! Two hosts in one class give the same bits. The probe runs every kind of kernel once on a tiny model.

use sha2::{Digest, Sha256};

use crate::data::batch::MicroBatch;
use crate::data::buckets::{Bucket, BucketShape};
use crate::model::translate::{Translate, TranslateConfig, Workspace};
use crate::train::optimizer::{clip, descend};

/// `cpu-` and twelve hexadecimal digits.
pub fn probe() -> String {
    let mut hash = Sha256::new();
    for (samples, attend_to_padding) in [(8, false), (0, true)] {
        let config = TranslateConfig { from_vocab: 37, to_vocab: 41, size: 24, layers: 2, samples, attend_to_padding };
        let model = Translate::new(config);
        let mut params = model.initial(7);
        let mut bucket = Bucket::new(BucketShape { source: 5, target: 7 });
        for line in 0..5u32 {
            let source: Vec<u32> = (0..line % 5).map(|t| 4 + (line * 7 + t * 3) % 33).collect();
            let target: Vec<u32> = (0..line % 4).map(|t| 4 + (line * 5 + t) % 37).chain([2]).collect();
            bucket.push(&source, &target, u64::from(line));
        }
        let batch = MicroBatch::build(0, &bucket, &[0, 1, 2, 3, 4]);
        let mut workspace = Workspace::default();
        for step in 0..2 {
            let prepared = model.prepare(&params);
            let negatives = model.negatives(7, step, batch.target_len);
            let (mut gradient, sums) = model.gradient(&params, &prepared, &batch, &negatives, &mut workspace);
            gradient.scale(0.2);
            clip(model.layout(), &mut gradient, 0.5);
            descend(&mut params, &gradient, 0.5);
            hash.update(sums.loss.to_le_bytes());
            let losses = model.losses(&params, &prepared, &batch, &mut workspace);
            losses.iter().for_each(|loss| hash.update(loss.to_le_bytes()));
        }
        params.data.iter().for_each(|value| hash.update(value.to_le_bytes()));
    }
    let digits: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("cpu-{digits}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_class_is_the_same_each_time() {
        assert_eq!(super::probe(), super::probe());
    }
}
