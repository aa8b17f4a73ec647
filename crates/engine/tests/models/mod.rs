//! The embedded models of the command, and values for them.

#![expect(clippy::unwrap_used, reason = "a test ends where what it stands on is missing")]

use armet::{Model, Tensor};

/// Name, name of its input, and a shape that it takes.
pub(crate) const MODELS: [(&str, &str, [usize; 4]); 3] = [
    ("pnet", "input_1", [1, 61, 47, 3]),
    ("rnet", "input_2", [3, 24, 24, 3]),
    ("onet", "input_3", [2, 48, 48, 3]),
];

/// One of the models.
pub(crate) fn load(name: &str) -> Model {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/assets");
    Model::load(format!("{folder}/{name}.onnx")).unwrap()
}

/// Numbers from -1 to 1 that look random and are the same each time.
pub(crate) fn values(shape: [usize; 4], seed: u64) -> Tensor {
    let mut numbers = Numbers(seed);
    let data: Vec<f32> =
        (0..shape.iter().product()).map(|_| numbers.next(2001) as f32 / 1000.0 - 1.0).collect();
    Tensor::new(shape, &data).unwrap()
}

/// A generator of numbers that look random.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    /// A number below `limit`.
    pub(crate) fn next(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % limit
    }
}
