//! The training state of a translate run, to and from the tensors of a checkpoint.

use std::sync::Arc;

use crate::checkpoint::{Tensor, TensorData, state_digest};
use crate::train::params::{Layout, Params};
use crate::train::schedule::Schedule;

/// Everything that the next step depends on. Equal states give equal digests.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// Steps done; also the data cursor, since a step's samples are a function of the seed and the step.
    pub step: u64,
    pub params: Params,
    pub schedule: Schedule,
    pub patience: Patience,
    /// Skipped steps in a row.
    pub bad_steps: u64,
}

/// Intervals without a better development loss.
#[derive(Debug, Clone, PartialEq)]
pub struct Patience {
    pub best: f64,
    pub stale: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { best: f64::INFINITY, stale: 0 }
    }
}

impl Patience {
    pub fn observe(&mut self, loss: f64) {
        if loss < self.best {
            *self = Self { best: loss, stale: 0 };
        } else {
            self.stale += 1;
        }
    }
}

impl State {
    pub fn fresh(params: Params, rate: f64) -> Self {
        Self { step: 0, params, schedule: Schedule::new(rate), patience: Patience::default(), bad_steps: 0 }
    }

    /// An update was made; its mean loss goes into the interval's.
    pub fn good_step(&mut self, loss: f64) {
        self.schedule.observe(loss);
        self.bad_steps = 0;
        self.step += 1;
    }

    /// A step without an update: its loss or gradient was not finite.
    pub fn bad_step(&mut self) {
        self.bad_steps += 1;
        self.step += 1;
    }

    pub fn digest(&self) -> String {
        state_digest(self.model_tensors().iter().chain(&self.state_tensors()))
    }

    pub fn model_tensors(&self) -> Vec<Tensor> {
        let layout = &self.params.layout;
        (0..layout.specs().len())
            .map(|index| {
                let spec = &layout.specs()[index];
                let data = TensorData::F32(self.params.get(index).to_vec());
                Tensor { name: spec.name.clone(), shape: spec.shape.clone(), data }
            })
            .collect()
    }

    pub fn state_tensors(&self) -> Vec<Tensor> {
        let Schedule { rate, history, interval_sum, interval_steps } = &self.schedule;
        vec![
            Tensor::u64s("training.step", vec![self.step]),
            Tensor::f64s("training.learning_rate", vec![*rate]),
            Tensor::f64s("training.interval_losses", history.clone()),
            Tensor::f64s("training.interval_sum", vec![*interval_sum]),
            Tensor::u64s("training.interval_steps", vec![*interval_steps]),
            Tensor::f64s("training.best_development_loss", vec![self.patience.best]),
            Tensor::u64s("training.stale_intervals", vec![self.patience.stale]),
            Tensor::u64s("training.bad_steps", vec![self.bad_steps]),
        ]
    }

    /// The state in a checkpoint's tensors, or what does not fit.
    pub fn restore(layout: &Arc<Layout>, tensors: &[Tensor]) -> Result<Self, String> {
        let params = restore_params(layout, tensors)?;
        let find =
            |name: &str| tensors.iter().find(|tensor| tensor.name == name).ok_or(format!("tensor {name} is missing"));
        let floats = |name: &str| match &find(name)?.data {
            TensorData::F64(values) => Ok(values.clone()),
            _ => Err(format!("tensor {name} is not F64")),
        };
        let float = |name: &str| match floats(name)?.as_slice() {
            [value] => Ok(*value),
            other => Err(format!("tensor {name} has {} values, expected 1", other.len())),
        };
        let integer = |name: &str| match &find(name)?.data {
            TensorData::U64(values) if values.len() == 1 => Ok(values[0]),
            _ => Err(format!("tensor {name} is not one U64")),
        };
        Ok(Self {
            step: integer("training.step")?,
            params,
            schedule: Schedule {
                rate: float("training.learning_rate")?,
                history: floats("training.interval_losses")?,
                interval_sum: float("training.interval_sum")?,
                interval_steps: integer("training.interval_steps")?,
            },
            patience: Patience {
                best: float("training.best_development_loss")?,
                stale: integer("training.stale_intervals")?,
            },
            bad_steps: integer("training.bad_steps")?,
        })
    }
}

/// Only the weights: what decoding needs.
pub fn restore_params(layout: &Arc<Layout>, tensors: &[Tensor]) -> Result<Params, String> {
    let mut params = Params::zeros(layout.clone());
    for (index, spec) in layout.specs().iter().enumerate() {
        let tensor = tensors
            .iter()
            .find(|tensor| tensor.name == spec.name)
            .ok_or_else(|| format!("tensor {} is missing", spec.name))?;
        if tensor.shape != spec.shape {
            return Err(format!("tensor {} has shape {:?}, expected {:?}", spec.name, tensor.shape, spec.shape));
        }
        match &tensor.data {
            TensorData::F32(values) => params.get_mut(index).copy_from_slice(values),
            _ => return Err(format!("tensor {} is not F32", spec.name)),
        }
    }
    if params.data.iter().any(|value| !value.is_finite()) {
        return Err("weights are not finite".to_owned());
    }
    Ok(params)
}
