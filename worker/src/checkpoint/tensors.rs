//! Named tensors as `safetensors` bytes.

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

/// Values of one of the types that a checkpoint holds.
#[derive(Debug, Clone, PartialEq)]
pub enum TensorData {
    F32(Vec<f32>),
    F64(Vec<f64>),
    U64(Vec<u64>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub data: TensorData,
}

impl Tensor {
    pub fn f64s(name: &str, values: Vec<f64>) -> Self {
        Self { name: name.to_owned(), shape: vec![values.len()], data: TensorData::F64(values) }
    }

    pub fn u64s(name: &str, values: Vec<u64>) -> Self {
        Self { name: name.to_owned(), shape: vec![values.len()], data: TensorData::U64(values) }
    }

    pub fn dtype(&self) -> Dtype {
        match self.data {
            TensorData::F32(_) => Dtype::F32,
            TensorData::F64(_) => Dtype::F64,
            TensorData::U64(_) => Dtype::U64,
        }
    }

    /// Little-endian bytes, which on this machine are the values' own.
    pub fn bytes(&self) -> &[u8] {
        match &self.data {
            TensorData::F32(values) => bytemuck::cast_slice(values),
            TensorData::F64(values) => bytemuck::cast_slice(values),
            TensorData::U64(values) => bytemuck::cast_slice(values),
        }
    }
}

#[cfg(target_endian = "big")]
compile_error!("checkpoints are written as the values lie in memory, which must be little-endian");

/// # Panics
/// If a tensor's shape does not fit its values: they come from the trainer's own code.
pub fn encode(tensors: &[Tensor]) -> Vec<u8> {
    let views = tensors.iter().map(|tensor| {
        let view =
            TensorView::new(tensor.dtype(), tensor.shape.clone(), tensor.bytes()).expect("shape fits the values");
        (tensor.name.as_str(), view)
    });
    safetensors::tensor::serialize(views, None).expect("names are unique and sizes were checked")
}

/// Tensors in name order, or what is wrong with the bytes.
pub fn decode(bytes: &[u8]) -> Result<Vec<Tensor>, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|error| format!("not a safetensors file: {error}"))?;
    let mut tensors = Vec::new();
    for (name, view) in file.tensors() {
        let raw = view.data();
        let data = match view.dtype() {
            Dtype::F32 => TensorData::F32(raw.chunks_exact(4).map(|b| f32::from_le_bytes(array(b))).collect()),
            Dtype::F64 => TensorData::F64(raw.chunks_exact(8).map(|b| f64::from_le_bytes(array(b))).collect()),
            Dtype::U64 => TensorData::U64(raw.chunks_exact(8).map(|b| u64::from_le_bytes(array(b))).collect()),
            other => return Err(format!("tensor {name} has type {other:?}; expected F32, F64 or U64")),
        };
        tensors.push(Tensor { name, shape: view.shape().to_vec(), data });
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(tensors)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("chunks have this length")
}
