//! Model files to graphs; the crate that reads untrusted bytes.
