//! The gradients of one step: this rank's micro-batches over its threads.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::collective::Part;
use crate::data::batch::MicroBatch;
use crate::model::negatives::Negatives;
use crate::model::translate::{Prepared, Translate, Workspace};
use crate::train::accumulate::Accumulator;
use crate::train::gradient::{Gradient, Sums};
use crate::train::params::Params;

/// Which micro-batches a rank computes, and with what.
pub struct Stepper {
    pub micro_batches: u32,
    pub owned: Range<u32>,
    workspaces: Vec<Mutex<Workspace>>,
}

impl Stepper {
    pub fn new(micro_batches: u32, owned: Range<u32>, threads: usize) -> Self {
        let workspaces = (0..threads.clamp(1, owned.len())).map(|_| Mutex::default()).collect();
        Self { micro_batches, owned, workspaces }
    }

    /// Sums over the largest subtrees of this rank, and the leaves' own figures. How the micro-batches are spread over
    /// threads does not change a bit.
    pub fn gradients(
        &self,
        model: &Translate,
        params: &Params,
        prepared: &Prepared,
        batches: &[(u32, MicroBatch)],
        negatives: &Negatives,
    ) -> (Vec<Part>, Vec<(u32, Sums)>) {
        let sums = Accumulator::new(self.micro_batches, self.owned.clone());
        let threads = self.workspaces.len();
        let mut leaves: Vec<(u32, Sums)> = std::thread::scope(|scope| {
            let workers: Vec<_> = self
                .workspaces
                .iter()
                .enumerate()
                .map(|(thread, workspace)| {
                    let share = batches.len() * thread / threads..batches.len() * (thread + 1) / threads;
                    let (batches, sums) = (&batches[share], &sums);
                    scope.spawn(move || {
                        let mut workspace = workspace.lock().unwrap_or_else(PoisonError::into_inner);
                        let inputs: Vec<&MicroBatch> = batches.iter().map(|(_, batch)| batch).collect();
                        let mut out: Vec<Gradient> = inputs.iter().map(|_| Gradient::zeros(model.layout())).collect();
                        let figures = model.gradients(params, prepared, &inputs, negatives, &mut workspace, &mut out);
                        let micros = batches.iter().map(|(micro, _)| *micro);
                        for (micro, gradient) in micros.clone().zip(out) {
                            sums.add(micro, gradient);
                        }
                        micros.zip(figures).collect::<Vec<_>>()
                    })
                })
                .collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("a gradient thread does not panic")).collect()
        });
        leaves.sort_by_key(|leaf| leaf.0);
        (sums.finish(), leaves)
    }
}
