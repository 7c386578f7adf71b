//! What all layers share: the context of a pass, packed weights, and where gradients go.

use super::gemm::{PackedMatrix, Rows, multiply};
use super::instructions::Instructions;
use crate::train::gradient::{Gradient, RowGradient};
use crate::train::params::{Layout, Params};

/// What every layer needs to know in a pass.
#[derive(Clone, Copy)]
pub struct Pass<'a> {
    pub instructions: Instructions,
    pub params: &'a Params,
    /// Rows of all micro-batches in this pass.
    pub rows: usize,
}

/// A weight of shape [inputs, outputs], packed for `x W` and for `dy Wᵀ`.
#[derive(Debug, Default)]
pub struct Weight {
    forward: PackedMatrix,
    backward: PackedMatrix,
}

impl Weight {
    pub fn pack(&mut self, rows: Rows<'_>) {
        self.forward.pack(rows);
        self.backward.pack_transposed(rows);
    }

    /// `out += input W`.
    pub fn apply(&self, pass: &Pass<'_>, input: &[f32], out: &mut [f32]) {
        let (inputs, outputs) = (self.forward.depth(), self.forward.columns());
        multiply(pass.instructions, Rows::new(input, inputs), &self.forward, out, outputs, true);
    }

    /// `input_gradient = output_gradient Wᵀ`, or `+=` when accumulating.
    pub fn apply_back(&self, pass: &Pass<'_>, output_gradient: &[f32], input_gradient: &mut [f32], accumulate: bool) {
        let (inputs, outputs) = (self.forward.depth(), self.forward.columns());
        let rows = Rows::new(output_gradient, outputs);
        multiply(pass.instructions, rows, &self.backward, input_gradient, inputs, accumulate);
    }
}

/// The elements of a dense parameter in a gradient.
pub fn dense<'a>(gradient: &'a mut Gradient, layout: &Layout, index: usize) -> &'a mut [f32] {
    &mut gradient.dense[layout.dense_range(index)]
}

/// Gives `buffer` exactly `length` elements; their values are left as they are.
pub fn sized(buffer: &mut Vec<f32>, length: usize) {
    buffer.resize(length, 0.0);
}

/// Copies row `ids[i]` of a table to row i of `out`.
pub fn look_up(table: &[f32], ids: &[u32], width: usize, out: &mut Vec<f32>) {
    out.clear();
    for id in ids {
        let start = *id as usize * width;
        out.extend_from_slice(&table[start..start + width]);
    }
}

/// Row gradients of a table: the sum over all looked-up rows of each id, in the order of `gradients`.
pub fn look_up_back(
    instructions: Instructions,
    ids: impl Iterator<Item = u32>,
    gradients: Rows<'_>,
    order: &mut Vec<(u32, u32)>,
    out: &mut RowGradient,
) {
    order.clear();
    order.extend(ids.zip(0..));
    order.sort_unstable();
    out.width = gradients.width;
    out.rows.clear();
    out.values.clear();
    for (id, row) in order.iter() {
        let values = gradients.row(*row as usize);
        if out.rows.last() == Some(id) {
            let start = out.values.len() - gradients.width;
            super::elementwise::add_assign(instructions, &mut out.values[start..], values);
        } else {
            out.rows.push(*id);
            out.values.extend_from_slice(values);
        }
    }
}
