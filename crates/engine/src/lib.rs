//! On-device AI for ARM Linux: load a model, see where it runs, run it.
