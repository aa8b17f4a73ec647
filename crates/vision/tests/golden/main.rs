//! Answers of OpenCV, Pillow, pyclipper and NumPy (made by `make_golden.py`) against this crate's.
//!
//! Inputs are made up by a generator that both sides repeat; only answers are stored.

mod common;
mod detection;
mod faces;
mod pictures;
