//! Values as `.npy` files in a folder, named after them: every value has a file of its own, whatever its name.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use armet::{Tensor, TensorError, npy};

use crate::output;

/// File systems take 255 bytes of name; this leaves room for what is added.
const LONGEST: usize = 200;

/// The files written to a folder so far.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    folder: &'a Path,
    used: HashSet<String>,
}

impl<'a> Files<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self { folder, used: HashSet::new() }
    }

    pub(crate) fn folder(&self) -> &'a Path {
        self.folder
    }

    /// Writes a tensor; gives its file.
    pub(crate) fn save(&mut self, name: &str, tensor: &Tensor) -> anyhow::Result<PathBuf> {
        let bytes = npy::write(tensor).map_err(|error| match error {
            TensorError::Npy(why) => {
                anyhow::anyhow!("cannot save {name}: {why}; leave --output out to see it")
            }
            other => anyhow::Error::new(other).context(format!("cannot save {name}")),
        })?;
        let path = self.folder.join(self.name(name));
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }

    /// A name that no other value has: characters that cannot be in one, or that act on terminals, become `_`.
    fn name(&mut self, name: &str) -> String {
        let odd = |c: char| matches!(c, '/' | ':' | '\\') || output::acts(c);
        let mut clean: String = name.chars().map(|c| if odd(c) { '_' } else { c }).collect();
        // Not one that is hidden.
        if clean.starts_with('.') {
            clean.replace_range(..1, "_");
        }
        if clean.len() > LONGEST {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            let end = clean.floor_char_boundary(LONGEST);
            clean = format!("{}~{:08x}", &clean[..end], hasher.finish() as u32);
        }
        let mut file = format!("{clean}.npy");
        let mut count = 1;
        while !self.used.insert(file.clone()) {
            count += 1;
            file = format!("{clean}~{count}.npy");
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_numpy_lacks_are_said() {
        let tensor = Tensor::zeros(armet::ElementType::Bf16, [1]).unwrap();
        let error = Files::new(Path::new("x")).save("y", &tensor).unwrap_err().to_string();
        assert_eq!(error, "cannot save y: NumPy has no type for bfloat16; leave --output out to see it");
    }

    #[test]
    fn every_value_has_a_file_of_its_own() {
        let mut files = Files::new(Path::new("x"));
        assert_eq!(files.name("a/b:c"), "a_b_c.npy");
        assert_eq!(files.name("a_b_c"), "a_b_c~2.npy");
        assert_eq!(files.name("a\u{1b}[31m\n\u{202e}"), "a_[31m__.npy");
        assert_eq!(files.name(".."), "_..npy");
        assert_eq!(files.name(".hidden"), "_hidden.npy");
        let (long, other) = ("ä".repeat(500), "ä".repeat(501));
        let (long, other) = (files.name(&long), files.name(&other));
        assert!(long.len() < 255 && long != other, "{long} {other}");
    }
}
