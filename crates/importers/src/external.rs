//! Files beside a model that hold its weights. A model names them, so the names are not to be trusted.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;

/// Gives the files that a model refers to.
pub trait ExternalData {
    /// The whole contents of a file; `name` is as the model has it, `limit` the most bytes that are wanted.
    ///
    /// # Errors
    /// When the name leads outside, or the file cannot be read or is larger than `limit`.
    fn file(&self, name: &str, limit: u64) -> Result<Bytes, ExternalError>;
}

/// Why a file beside the model was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// The name is absolute, climbs out of the directory, or leads out of it through a link.
    #[error("its name leads outside of the model's directory")]
    Outside,
    /// It is a directory, a pipe or a device.
    #[error("it is no regular file")]
    NotAFile,
    /// It is larger than allowed.
    #[error("it has {bytes} bytes, {limit} are allowed")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// What is allowed.
        limit: u64,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

type Map = Box<dyn Fn(&File) -> std::io::Result<Bytes> + Send + Sync>;

/// The files of one directory and of those below it; nothing outside is ever opened.
pub struct Directory {
    root: PathBuf,
    map: Option<Map>,
}

impl Directory {
    /// The directory `root`; files are read into memory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), map: None }
    }

    /// Lets the caller turn an open file into bytes, by mapping it for instance.
    #[must_use]
    pub fn with_map(mut self, map: impl Fn(&File) -> std::io::Result<Bytes> + Send + Sync + 'static) -> Self {
        self.map = Some(Box::new(map));
        self
    }

    fn resolve(&self, name: &str) -> Result<PathBuf, ExternalError> {
        let relative = Path::new(name);
        let inside = |c: Component<'_>| matches!(c, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || name.contains('\0') || !relative.components().all(inside) {
            return Err(ExternalError::Outside);
        }
        let root = self.root.canonicalize()?;
        let path = root.join(relative).canonicalize()?;
        if path.starts_with(&root) { Ok(path) } else { Err(ExternalError::Outside) }
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("root", &self.root).finish_non_exhaustive()
    }
}

impl ExternalData for Directory {
    fn file(&self, name: &str, limit: u64) -> Result<Bytes, ExternalError> {
        let path = self.resolve(name)?;
        // Opening a pipe would wait for its writer, so what it is must be known before.
        if !path.metadata()?.is_file() {
            return Err(ExternalError::NotAFile);
        }
        let file = File::open(&path)?;
        let bytes = file.metadata()?.len();
        if bytes > limit {
            return Err(ExternalError::TooLarge { bytes, limit });
        }
        if let Some(map) = &self.map {
            return Ok(map(&file)?);
        }
        let mut contents = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        file.take(limit).read_to_end(&mut contents)?;
        Ok(contents.into())
    }
}
