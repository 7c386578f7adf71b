//! Each pair reaches the model exactly once per epoch, whatever the lengths, the batch size and the micro-batches.

use crate::support::Folder;
use worker::data::buckets::TRANSLATE_BUCKETS;
use worker::data::feed::{Feed, FeedSettings};
use worker::data::order::Drawing;
use worker::data::pairs::{Pairs, read_pairs};

/// Line n holds `n % longest` source words and half as many target words.
fn pairs(lines: usize, longest: usize) -> Pairs {
    let folder = Folder::new();
    let text = |halved: usize| -> String { (0..lines).map(|n| "w ".repeat(n % longest / halved) + "\n").collect() };
    for set in ["train", "test"] {
        folder.write(&format!("{set}.a"), text(1));
        folder.write(&format!("{set}.b"), text(2));
    }
    let prepared = folder.prepare(&folder.settings(100)).0.unwrap();
    let pairs = read_pairs(&folder.storage, &prepared.train, &TRANSLATE_BUCKETS, 0, &mut |_| {}).unwrap();
    pairs.for_training(&prepared.train).unwrap()
}

/// Ids of the samples of each step, micro-batches joined.
fn steps(pairs: &Pairs, batch_size: usize, micro_batches: usize, steps: std::ops::Range<u64>) -> Vec<Vec<u64>> {
    let settings = FeedSettings { seed: 3, batch_size, micro_batches, drawing: Drawing::OncePerEpoch };
    let mut feed = Feed::new(pairs.clone(), settings);
    let mut ids = Vec::new();
    for step in steps {
        let of_step: Vec<_> = (0..micro_batches).map(|micro| feed.micro_batch(step, micro)).collect();
        assert!(of_step.iter().all(|batch| batch.bucket == of_step[0].bucket), "a step has one bucket");
        assert!(of_step.iter().all(|batch| batch.rows == batch.sample_ids.len()));
        ids.push(of_step.into_iter().flat_map(|batch| batch.sample_ids).collect());
    }
    ids
}

fn check(lines: usize, longest: usize, batch_size: usize, steps_per_epoch: u64) {
    let pairs = pairs(lines, longest);
    let reference = steps(&pairs, batch_size, 1, 0..3 * steps_per_epoch);
    for epoch in reference.chunks(steps_per_epoch as usize) {
        let mut used = epoch.concat();
        used.sort_unstable();
        assert_eq!(used, (0..lines as u64).collect::<Vec<_>>());
    }
    for micro_batches in [2, 3, 4, 8] {
        assert_eq!(steps(&pairs, batch_size, micro_batches, 0..3 * steps_per_epoch), reference);
    }
    let resumed = steps_per_epoch / 3..3 * steps_per_epoch;
    assert_eq!(steps(&pairs, batch_size, 8, resumed.clone()), reference[resumed.start as usize..]);
}

#[test]
fn fourteen_pairs_in_batches_of_two_are_each_used_once_per_epoch() {
    check(14, 2, 2, 7);
}

#[test]
fn a_thousand_and_one_lines_of_many_lengths_are_each_used_once_per_epoch() {
    // 165 lines have up to 4 words, 164 up to 9, 320 up to 19, 352 up to 30.
    check(1001, 31, 16, 11 + 11 + 20 + 22);
}

#[test]
fn ninety_numbered_samples_survive_an_interruption_in_the_middle() {
    check(90, 2, 4, 23);
}
