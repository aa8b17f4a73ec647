//! ONNX's own cases, and those made with ONNX Runtime for its operators: models with inputs and the outputs that they
//! should have, run as a user would run them.
//!
//! Contract: every case of a suite ends as one [`Verdict`]. Cases run in processes of their own ([`pool`]), so that one
//! that ends its process, or never ends, is a failure with a name and nothing more.

pub mod compare;
pub mod page;
pub mod pool;
mod run;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use run::run;

/// A folder of cases.
#[derive(Debug, Clone)]
pub struct Suite {
    /// Its name in reports.
    pub name: String,
    /// Where its cases lie, one folder each.
    pub folder: PathBuf,
    /// What is known of them.
    pub index: Index,
}

/// What `index.json` says.
#[derive(Debug, Clone, Deserialize)]
pub struct Index {
    /// The package that they come from, as its name and version.
    #[serde(flatten)]
    pub package: Package,
    /// The cases by name.
    pub cases: BTreeMap<String, Case>,
}

/// The package that made a suite.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Package {
    /// The standard's own, in this version.
    Onnx(String),
    /// ONNX Runtime, whose operators are no standard's, in this version.
    OnnxRuntime(String),
}

impl std::fmt::Display for Package {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Onnx(version) => write!(f, "onnx {version}"),
            Self::OnnxRuntime(version) => write!(f, "onnxruntime {version}"),
        }
    }
}

/// One case.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Case {
    /// Relative tolerance of float outputs.
    pub rtol: f64,
    /// Absolute tolerance of float outputs.
    pub atol: f64,
    /// By how much integers may differ: results of quantized arithmetic that lie between two.
    #[serde(default)]
    pub steps: u8,
    /// Whether the outputs follow from the operator's description, because the package itself cannot run it.
    #[serde(default)]
    pub described: bool,
    /// The operators in its graph.
    pub operators: Vec<String>,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Verdict {
    /// All outputs are those of the standard.
    Passed,
    /// They are, within the rounding of the expected numbers, not within the case's own tolerances.
    Rounded,
    /// Known before running not to be supported.
    Refused {
        /// The typed reasons, one for each node that is not supported.
        reasons: Vec<Reason>,
    },
    /// Anything else: a wrong number, an error while running, a panic, no end.
    Failed {
        /// What happened.
        why: String,
    },
}

/// Why a node is not supported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reason {
    /// Its operator.
    pub operator: String,
    /// The importer's words.
    pub reason: String,
}

/// A case that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ended {
    /// Its name.
    pub case: String,
    /// How.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// How many cases ended in which way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// As the standard says.
    pub passed: usize,
    /// Wrong.
    pub failed: usize,
    /// Not supported, and known beforehand.
    pub refused: usize,
}

impl Counts {
    /// Adds one.
    pub fn add(&mut self, verdict: &Verdict) {
        match verdict {
            Verdict::Passed | Verdict::Rounded => self.passed += 1,
            Verdict::Failed { .. } => self.failed += 1,
            Verdict::Refused { .. } => self.refused += 1,
        }
    }

    /// Counts of these.
    pub fn of<'a>(ended: impl IntoIterator<Item = &'a Ended>) -> Self {
        let mut counts = Self::default();
        ended.into_iter().for_each(|one| counts.add(&one.verdict));
        counts
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed, {} refused", self.passed, self.failed, self.refused)
    }
}

impl Suite {
    /// The suite of a folder.
    ///
    /// # Errors
    /// When its index cannot be read.
    pub fn open(name: impl Into<String>, folder: &Path) -> Result<Self, String> {
        let path = folder.join("index.json");
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let bytes = std::fs::read(&path).map_err(|e| told(&e))?;
        let index = serde_json::from_slice(&bytes).map_err(|e| told(&e))?;
        Ok(Self { name: name.into(), folder: folder.to_owned(), index })
    }

    /// The suites below `folders`: one that has an index itself, or the folders in it that have one.
    ///
    /// # Errors
    /// When an index cannot be read.
    pub fn all(folders: &[(&str, &Path)]) -> Result<Vec<Self>, String> {
        let mut suites = Vec::new();
        for (name, folder) in folders {
            if folder.join("index.json").exists() {
                suites.push(Self::open(*name, folder)?);
                continue;
            }
            let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            let mut inner: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
            inner.retain(|path| path.join("index.json").exists());
            inner.sort();
            for path in inner {
                suites.push(Self::open(path.file_name().unwrap_or_default().to_string_lossy(), &path)?);
            }
        }
        Ok(suites)
    }
}
