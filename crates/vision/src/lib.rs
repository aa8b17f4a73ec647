//! Pictures in and out: decoding, resizing, normalising, detection and text post-processing, drawing.
