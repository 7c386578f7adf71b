//! Global norm, clip and plain SGD over dense and row gradients.

use super::gradient::Gradient;
use super::params::{GradientKind, Layout, Params};

/// Squares are summed in blocks of this many elements, so that the sum does not depend on how a tensor is cut.
const BLOCK: usize = 65_536;

/// sqrt(sum of squares) over all parameters in name order; rows in id order. In f64.
pub fn global_norm(layout: &Layout, gradient: &Gradient) -> f64 {
    let mut total = 0.0f64;
    for (index, spec) in layout.specs().iter().enumerate() {
        let values: &[f32] = match spec.gradient {
            GradientKind::Dense => &gradient.dense[layout.dense_range(index)],
            GradientKind::Rows => &gradient.rows[layout.row_slot(index)].values,
        };
        for block in values.chunks(BLOCK) {
            total += block.iter().map(|value| f64::from(*value) * f64::from(*value)).sum::<f64>();
        }
    }
    total.sqrt()
}

/// Scales the gradient to `max_norm` where it is longer. Gives the norm before.
pub fn clip(layout: &Layout, gradient: &mut Gradient, max_norm: f64) -> f64 {
    let norm = global_norm(layout, gradient);
    if norm.is_finite() && norm > max_norm {
        gradient.scale((max_norm / norm) as f32);
    }
    norm
}

/// `params -= rate * gradient`; rows that no sample touched stay as they are.
pub fn descend(params: &mut Params, gradient: &Gradient, rate: f32) {
    let layout = params.layout.clone();
    for (index, spec) in layout.specs().iter().enumerate() {
        match spec.gradient {
            GradientKind::Dense => {
                let gradient = &gradient.dense[layout.dense_range(index)];
                for (value, slope) in params.get_mut(index).iter_mut().zip(gradient) {
                    *value -= rate * slope;
                }
            }
            GradientKind::Rows => {
                let table = &gradient.rows[layout.row_slot(index)];
                let values = params.get_mut(index);
                for (position, &row) in table.rows.iter().enumerate() {
                    let start = row as usize * table.width;
                    for (value, slope) in values[start..start + table.width].iter_mut().zip(table.row(position)) {
                        *value -= rate * slope;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::train::gradient::RowGradient;
    use crate::train::params::ParamSpec;

    fn example() -> (Params, Gradient) {
        let layout = Arc::new(Layout::new(vec![ParamSpec::rows("table", &[3, 2]), ParamSpec::dense("bias", &[2])]));
        let gradient = Gradient {
            dense: vec![3.0, 0.0],
            rows: vec![RowGradient { width: 2, rows: vec![1], values: vec![0.0, 4.0] }],
        };
        (Params::zeros(layout), gradient)
    }

    #[test]
    fn the_norm_spans_dense_and_row_gradients_and_is_taken_before_clipping() {
        let (params, mut gradient) = example();
        assert_eq!(clip(&params.layout, &mut gradient, 10.0), 5.0);
        assert_eq!(gradient.dense, [3.0, 0.0]);
        assert_eq!(clip(&params.layout, &mut gradient, 2.5), 5.0);
        assert_eq!((gradient.dense[0], gradient.rows[0].values[1]), (1.5, 2.0));
    }

    #[test]
    fn a_step_moves_only_what_has_a_gradient() {
        let (mut params, gradient) = example();
        descend(&mut params, &gradient, 0.5);
        assert_eq!(params.get(params.layout.index("bias")), [-1.5, 0.0]);
        assert_eq!(params.get(params.layout.index("table")), [0.0, 0.0, 0.0, -2.0, 0.0, 0.0]);
    }
}
