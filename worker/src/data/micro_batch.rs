//! Cutting the batch of a step into micro-batches, and laying one out for the model.

use super::batch::MicroBatch;
use super::buckets::Bucket;
use super::vocabulary::{GO, PAD};
use std::ops::Range;

/// The places of a batch of `rows` pairs that belong to `micro`: those i with floor(i * V / B) = micro, B being the
/// job's batch size even where a batch is shorter. May be empty.
pub fn places_of(micro: usize, micro_batches: usize, batch_size: usize, rows: usize) -> Range<usize> {
    debug_assert!(micro < micro_batches && rows <= batch_size, "the micro-batches of a batch cover its places");
    let start = |micro: usize| (micro * batch_size).div_ceil(micro_batches).min(rows);
    start(micro)..start(micro + 1)
}

impl MicroBatch {
    /// Lays out the given pairs of `bucket`, which has the place `bucket_index` among all.
    pub fn build(bucket_index: usize, bucket: &Bucket, pairs: &[u32]) -> Self {
        let shape = bucket.shape();
        let rows = pairs.len();
        let mut batch = Self {
            bucket: bucket_index,
            rows,
            source_len: shape.source,
            target_len: shape.target,
            encoder: vec![PAD; shape.source * rows],
            decoder: vec![PAD; shape.target * rows],
            targets: vec![PAD; shape.target * rows],
            weights: vec![0.0; shape.target * rows],
            source_lengths: Vec::with_capacity(rows),
            sample_ids: Vec::with_capacity(rows),
        };
        for (row, pair) in pairs.iter().enumerate() {
            let pair = *pair as usize;
            let (source, target) = (bucket.source(pair), bucket.target(pair));
            for (place, id) in source.iter().enumerate() {
                batch.encoder[(shape.source - 1 - place) * rows + row] = *id;
            }
            batch.decoder[row] = GO;
            for (place, id) in target.iter().enumerate() {
                batch.decoder[(place + 1) * rows + row] = *id;
                batch.targets[place * rows + row] = *id;
                // A typed `_PAD` is an unknown word, so no real target is PAD.
                batch.weights[place * rows + row] = 1.0;
            }
            batch.source_lengths.push(source.len() as u32);
            batch.sample_ids.push(bucket.line(pair));
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::super::buckets::TRANSLATE_BUCKETS;
    use super::*;

    /// The values of one sample over all positions.
    fn row<T: Copy>(values: &[T], rows: usize, row: usize) -> Vec<T> {
        values.iter().skip(row).step_by(rows).copied().collect()
    }

    #[test]
    fn the_published_example_is_laid_out_to_the_digit() {
        let mut bucket = Bucket::new(TRANSLATE_BUCKETS[0]);
        bucket.push(&[], &[2], 3);
        bucket.push(&[7, 8, 9], &[11, 12, 2], 41);
        let batch = MicroBatch::build(0, &bucket, &[0, 1, 1]);
        assert_eq!((batch.rows, batch.source_len, batch.target_len), (3, 5, 10));
        for sample in [1, 2] {
            assert_eq!(row(&batch.encoder, 3, sample), [0, 0, 9, 8, 7]);
            assert_eq!(row(&batch.decoder, 3, sample), [1, 11, 12, 2, 0, 0, 0, 0, 0, 0]);
            assert_eq!(row(&batch.targets, 3, sample), [11, 12, 2, 0, 0, 0, 0, 0, 0, 0]);
            assert_eq!(row(&batch.weights, 3, sample), [1., 1., 1., 0., 0., 0., 0., 0., 0., 0.]);
        }
        assert_eq!(row(&batch.encoder, 3, 0), [0; 5]);
        assert_eq!(row(&batch.decoder, 3, 0), [1, 2, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(batch.source_lengths, [0, 3, 3]);
        assert_eq!(batch.sample_ids, [3, 41, 41]);
    }

    #[test]
    fn the_longest_target_leaves_the_last_position_unweighted() {
        let mut bucket = Bucket::new(TRANSLATE_BUCKETS[0]);
        bucket.push(&[4, 5, 6, 7], &[11, 12, 13, 14, 15, 16, 17, 18, 2], 0);
        let batch = MicroBatch::build(0, &bucket, &[0]);
        assert_eq!(batch.encoder, [0, 7, 6, 5, 4]);
        assert_eq!(batch.decoder, [1, 11, 12, 13, 14, 15, 16, 17, 18, 2]);
        assert_eq!(batch.targets, [11, 12, 13, 14, 15, 16, 17, 18, 2, 0]);
        assert_eq!(batch.weights, [1., 1., 1., 1., 1., 1., 1., 1., 1., 0.]);
    }

    #[test]
    fn every_place_belongs_to_the_micro_batch_that_the_formula_names() {
        for (micro_batches, batch_size) in [(8, 64), (8, 8), (8, 5), (3, 14), (7, 100), (1, 9), (64, 3)] {
            for rows in 0..=batch_size {
                let mut covered = Vec::new();
                for micro in 0..micro_batches {
                    for place in places_of(micro, micro_batches, batch_size, rows) {
                        assert_eq!(place * micro_batches / batch_size, micro);
                        covered.push(place);
                    }
                }
                assert_eq!(covered, (0..rows).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_empty_micro_batch_keeps_the_shape_of_its_bucket() {
        let batch = MicroBatch::build(2, &Bucket::new(TRANSLATE_BUCKETS[2]), &[]);
        assert_eq!((batch.bucket, batch.rows, batch.source_len, batch.target_len), (2, 0, 20, 25));
        assert!(batch.encoder.is_empty() && batch.decoder.is_empty());
    }
}
