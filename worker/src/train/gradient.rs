//! The gradient of a micro-batch, or of a whole subtree of them: a sum over samples, never a mean.

use std::cmp::Ordering;

use super::params::Layout;

/// Rows of one parameter, sorted by row id, each id once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowGradient {
    pub width: usize,
    pub rows: Vec<u32>,
    /// `rows.len() * width` values.
    pub values: Vec<f32>,
}

impl RowGradient {
    pub fn new(width: usize) -> Self {
        Self { width, rows: Vec::new(), values: Vec::new() }
    }

    pub fn row(&self, position: usize) -> &[f32] {
        &self.values[position * self.width..(position + 1) * self.width]
    }

    /// `self + right`. A row present on one side only is copied, so that absent never becomes zero.
    pub fn merge(&self, right: &Self) -> Self {
        debug_assert_eq!(self.width, right.width);
        let mut out = Self::new(self.width);
        out.rows.reserve(self.rows.len() + right.rows.len());
        out.values.reserve(self.values.len() + right.values.len());
        let (mut a, mut b) = (0, 0);
        while a < self.rows.len() || b < right.rows.len() {
            let order = match (self.rows.get(a), right.rows.get(b)) {
                (Some(left), Some(other)) => left.cmp(other),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            match order {
                Ordering::Less => {
                    out.rows.push(self.rows[a]);
                    out.values.extend_from_slice(self.row(a));
                    a += 1;
                }
                Ordering::Greater => {
                    out.rows.push(right.rows[b]);
                    out.values.extend_from_slice(right.row(b));
                    b += 1;
                }
                Ordering::Equal => {
                    out.rows.push(self.rows[a]);
                    out.values.extend(self.row(a).iter().zip(right.row(b)).map(|(x, y)| x + y));
                    a += 1;
                    b += 1;
                }
            }
        }
        out
    }
}

/// Dense elements in name order, then one [`RowGradient`] per row parameter in name order.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    pub dense: Vec<f32>,
    pub rows: Vec<RowGradient>,
}

impl Gradient {
    pub fn zeros(layout: &Layout) -> Self {
        Self {
            dense: vec![0.0; layout.dense_total()],
            rows: layout.row_params().map(|index| RowGradient::new(layout.specs()[index].row_width())).collect(),
        }
    }

    /// `self = self + right`, the one addition that the reduction tree is made of.
    pub fn add(&mut self, right: &Self) {
        debug_assert_eq!(self.dense.len(), right.dense.len());
        for (left, right) in self.dense.iter_mut().zip(&right.dense) {
            *left += right;
        }
        for (left, right) in self.rows.iter_mut().zip(&right.rows) {
            *left = left.merge(right);
        }
    }

    pub fn scale(&mut self, factor: f32) {
        for value in &mut self.dense {
            *value *= factor;
        }
        for table in &mut self.rows {
            for value in &mut table.values {
                *value *= factor;
            }
        }
    }
}

/// What travels beside the gradient of a micro-batch: leaves of the same tree.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sums {
    /// Sum of the samples' losses, each already carrying its own weight.
    pub loss: f64,
    pub samples: u64,
    /// Non-padding tokens, source and target.
    pub tokens: u64,
}

impl Sums {
    pub fn add(&mut self, right: &Self) {
        self.loss += right.loss;
        self.samples += right.samples;
        self.tokens += right.tokens;
    }
}
