//! Element types, shapes, quantization parameters and owned tensors.
