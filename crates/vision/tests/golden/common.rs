//! What the golden tests share: the generator of made-up inputs, the hash of long answers, reading the files.

use serde_json::Value;

/// The same numbers as `Generator` in `make_golden.py`.
pub(crate) struct Generator(u32);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed as u32)
    }

    pub(crate) fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.0 >> 8
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.next() >> 16) as u8).collect()
    }
}

/// 64-bit FNV-1a, as `make_golden.py` prints it.
pub(crate) fn fnv(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// The cases of a golden file; there is at least one.
pub(crate) fn cases(text: &str) -> Vec<Value> {
    let cases: Vec<Value> = serde_json::from_str(text).expect("a golden file");
    assert!(!cases.is_empty());
    cases
}

/// The numbers of a JSON list.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("a list").iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// The whole numbers of a JSON list.
pub(crate) fn sizes(value: &Value) -> Vec<usize> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|number| number.as_u64().expect("a whole number") as usize)
        .collect()
}
