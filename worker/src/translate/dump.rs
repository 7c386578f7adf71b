//! `--dump_run`: the inputs of the first steps of a run, for a program in another framework to compute the same, and
//! what this one made of them.

use std::fs::{File, write};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::error::TrainError;
use super::settings::Dump;
use crate::checkpoint::{Tensor, TensorData, encode};
use crate::data::batch::MicroBatch;
use crate::data::evaluation::{Extent, evaluation_batches};
use crate::data::feed::Feed;
use crate::data::pairs::Pairs;
use crate::model::dump::write_dump;
use crate::model::translate::Translate;
use crate::train::gradient::Gradient;
use crate::train::params::{GradientKind, Layout, Params};

/// Rows of one line of `dev.jsonl`.
const DEV_ROWS: usize = 64;

/// Which steps a dump holds.
pub struct Steps {
    pub first: u64,
    pub seed: u64,
    pub micro_batches: u32,
}

/// Writes what goes in at once, and `ours.jsonl` (loss of each step) and `gradient.safetensors` (mean gradient of the
/// first step, before clipping) as the steps are made.
pub struct Recorder {
    folder: PathBuf,
    losses: BufWriter<File>,
    left: u64,
    first: bool,
}

impl Recorder {
    /// `params` are those before the first step.
    pub fn start(
        dump: &Dump,
        model: &Translate,
        params: &Params,
        feed: &mut Feed,
        dev: &Pairs,
        steps: &Steps,
    ) -> Result<Self, TrainError> {
        let folder = PathBuf::from(&dump.folder);
        let inputs = (steps.first..steps.first + dump.steps).map(|step| {
            let batches: Vec<MicroBatch> =
                (0..steps.micro_batches as usize).map(|micro| feed.micro_batch(step, micro)).collect();
            let negatives = model.negatives(steps.seed, step, batches[0].target_len);
            (batches, negatives)
        });
        let written = write_dump(&folder, model.config(), params, inputs)
            .and_then(|()| write_dev(&folder, dev))
            .and_then(|()| File::create(folder.join("ours.jsonl")));
        let losses = BufWriter::new(written.map_err(|source| failed(&dump.folder, source))?);
        Ok(Self { folder, losses, left: dump.steps, first: true })
    }

    /// The reduced mean gradient and the mean loss of a step.
    pub fn step(&mut self, layout: &Layout, gradient: &Gradient, loss: f64) -> Result<(), TrainError> {
        if self.left == 0 {
            return Ok(());
        }
        self.left -= 1;
        let first = std::mem::replace(&mut self.first, false);
        let written = match first {
            true => write(self.folder.join("gradient.safetensors"), encode(&tensors(layout, gradient))),
            false => Ok(()),
        };
        let written = written
            .and_then(|()| writeln!(self.losses, "{}", json!({ "loss": loss })))
            .and_then(|()| self.losses.flush());
        written.map_err(|source| failed(&self.folder.display().to_string(), source))
    }
}

fn failed(folder: &str, source: io::Error) -> TrainError {
    TrainError::Dump { folder: folder.to_owned(), source }
}

/// The whole development set, a batch a line.
fn write_dev(folder: &Path, dev: &Pairs) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(folder.join("dev.jsonl"))?);
    for batch in evaluation_batches(&dev.sizes(), Extent::Whole, 0, DEV_ROWS) {
        let batch = MicroBatch::build(batch.bucket, &dev.buckets[batch.bucket], &batch.pairs);
        serde_json::to_writer(&mut out, &batch)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Rows that no sample touched are zero here, so that the other program need not know of rows.
fn tensors(layout: &Layout, gradient: &Gradient) -> Vec<Tensor> {
    let values = |index: usize| match layout.specs()[index].gradient {
        GradientKind::Dense => gradient.dense[layout.dense_range(index)].to_vec(),
        GradientKind::Rows => {
            let table = &gradient.rows[layout.row_slot(index)];
            let mut values = vec![0.0; layout.specs()[index].elements()];
            for (position, &row) in table.rows.iter().enumerate() {
                let start = row as usize * table.width;
                values[start..start + table.width].copy_from_slice(table.row(position));
            }
            values
        }
    };
    let specs = layout.specs().iter().enumerate();
    specs
        .map(|(index, spec)| Tensor {
            name: spec.name.clone(),
            shape: spec.shape.clone(),
            data: TensorData::F32(values(index)),
        })
        .collect()
}
