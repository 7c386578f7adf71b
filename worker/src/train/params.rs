//! All parameters of a model in one flat buffer, in name order.

use std::ops::Range;
use std::sync::Arc;

/// How the gradient of a parameter travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GradientKind {
    /// Every element, every step.
    Dense,
    /// Only the rows that a batch touched (embeddings, output projection under sampled softmax).
    /// Rows are the first dimension; an absent row is absent, not zero.
    Rows,
}

/// Name, shape and gradient kind of one parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamSpec {
    pub name: String,
    pub shape: Vec<usize>,
    pub gradient: GradientKind,
}

impl ParamSpec {
    pub fn dense(name: &str, shape: &[usize]) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), gradient: GradientKind::Dense }
    }

    pub fn rows(name: &str, shape: &[usize]) -> Self {
        Self { name: name.to_owned(), shape: shape.to_vec(), gradient: GradientKind::Rows }
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Elements of one row: the product of all dimensions but the first.
    pub fn row_width(&self) -> usize {
        self.shape[1..].iter().product()
    }
}

/// Where each parameter lies. Sorted by name, so that every rank agrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    specs: Vec<ParamSpec>,
    /// Start of each parameter in `Params::data`.
    starts: Vec<usize>,
    /// Start of each dense parameter in `Gradient::dense`; unused entries repeat the next start.
    dense_starts: Vec<usize>,
    total: usize,
    dense_total: usize,
}

impl Layout {
    /// # Panics
    /// If two parameters share a name: a model that does this cannot be saved.
    pub fn new(mut specs: Vec<ParamSpec>) -> Self {
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        for pair in specs.windows(2) {
            assert!(pair[0].name != pair[1].name, "parameter name used twice: {}", pair[0].name);
        }
        let (mut total, mut dense_total) = (0, 0);
        let (mut starts, mut dense_starts) = (Vec::new(), Vec::new());
        for spec in &specs {
            starts.push(total);
            dense_starts.push(dense_total);
            total += spec.elements();
            if spec.gradient == GradientKind::Dense {
                dense_total += spec.elements();
            }
        }
        Self { specs, starts, dense_starts, total, dense_total }
    }

    pub fn specs(&self) -> &[ParamSpec] {
        &self.specs
    }

    /// Elements of all parameters together.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Elements of all dense parameters together.
    pub fn dense_total(&self) -> usize {
        self.dense_total
    }

    /// Index of a parameter by name.
    ///
    /// # Panics
    /// If there is none: names are constants of the model's code.
    pub fn index(&self, name: &str) -> usize {
        self.specs
            .binary_search_by(|spec| spec.name.as_str().cmp(name))
            .unwrap_or_else(|_| panic!("no parameter named {name}"))
    }

    /// Range of parameter `index` in `Params::data`.
    pub fn range(&self, index: usize) -> Range<usize> {
        self.starts[index]..self.starts[index] + self.specs[index].elements()
    }

    /// Range of dense parameter `index` in `Gradient::dense`.
    ///
    /// # Panics
    /// If its gradient travels as rows.
    pub fn dense_range(&self, index: usize) -> Range<usize> {
        assert!(self.specs[index].gradient == GradientKind::Dense, "{} has no dense gradient", self.specs[index].name);
        self.dense_starts[index]..self.dense_starts[index] + self.specs[index].elements()
    }

    /// Indices of the parameters whose gradient travels as rows, in name order.
    pub fn row_params(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.specs.len()).filter(|&index| self.specs[index].gradient == GradientKind::Rows)
    }

    /// Indices of the parameters with a dense gradient, in name order.
    pub fn dense_params(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.specs.len()).filter(|&index| self.specs[index].gradient == GradientKind::Dense)
    }

    /// Position of parameter `index` in `Gradient::rows`.
    pub fn row_slot(&self, index: usize) -> usize {
        self.row_params().position(|other| other == index).expect("only called for parameters with row gradients")
    }
}

/// The values of all parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    pub layout: Arc<Layout>,
    pub data: Vec<f32>,
}

impl Params {
    pub fn zeros(layout: Arc<Layout>) -> Self {
        let data = vec![0.0; layout.total()];
        Self { layout, data }
    }

    pub fn get(&self, index: usize) -> &[f32] {
        &self.data[self.layout.range(index)]
    }

    pub fn get_mut(&mut self, index: usize) -> &mut [f32] {
        let range = self.layout.range(index);
        &mut self.data[range]
    }
}
