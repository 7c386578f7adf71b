//! `--dump_run`: the inputs of the first steps of a run, for a program in another framework to compute the same.

use std::path::Path;

use super::error::TrainError;
use super::settings::Dump;
use crate::data::feed::Feed;
use crate::model::dump::write_dump;
use crate::model::translate::Translate;
use crate::train::params::Params;

/// `params` are those before step `first`.
pub fn dump(
    dump: &Dump,
    model: &Translate,
    params: &Params,
    feed: &mut Feed,
    seed: u64,
    micro_batches: u32,
    first: u64,
) -> Result<(), TrainError> {
    let steps = (first..first + dump.steps).map(|step| {
        let batches: Vec<_> = (0..micro_batches as usize).map(|micro| feed.micro_batch(step, micro)).collect();
        let negatives = model.negatives(seed, step, batches[0].target_len);
        (batches, negatives)
    });
    write_dump(Path::new(&dump.folder), model.config(), params, steps)
        .map_err(|source| TrainError::Dump { folder: dump.folder.clone(), source })
}
