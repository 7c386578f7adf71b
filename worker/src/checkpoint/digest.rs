//! The one number that two equal training states share.

use sha2::{Digest, Sha256};

use super::Tensor;

/// SHA-256 over all tensors in name order: name, type, shape and bytes. Step, learning rate, decay history and data
/// cursor are tensors too; time, generation and the number of workers are not in it.
pub fn state_digest<'a>(tensors: impl IntoIterator<Item = &'a Tensor>) -> String {
    let mut sorted: Vec<&Tensor> = tensors.into_iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for tensor in sorted {
        field(tensor.name.as_bytes());
        field(format!("{:?}", tensor.dtype()).as_bytes());
        let shape: Vec<u8> = tensor.shape.iter().flat_map(|size| (*size as u64).to_le_bytes()).collect();
        field(&shape);
        field(tensor.bytes());
    }
    hex(&hash.finalize())
}

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
