//! A model that was read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use armet_graph::ops::CustomOperators;
use armet_graph::{Dim, Graph, ValueType};
use armet_importers::{Directory, ExternalData, onnx, read_file};
use armet_tensor::ElementType;
use bytes::Bytes;

use crate::LoadError;

/// A model's own file is at most this long: a protocol buffer ends at 2 GiB.
const LARGEST_FILE: u64 = 1 << 31;

/// An input or output, as the model declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSpec {
    /// Its name.
    pub name: String,
    /// Its type; free dimensions have names.
    pub ty: ValueType,
}

impl ValueSpec {
    /// The element type, when it is a tensor.
    pub fn element(&self) -> Option<ElementType> {
        self.ty.tensor().map(|t| t.element)
    }

    /// The dimensions, when it is a tensor of known rank.
    pub fn dims(&self) -> Option<&[Dim]> {
        self.ty.tensor()?.dims.as_deref()
    }
}

/// What a model may need besides its file.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Operators that the engine does not know, or that are to take the place of its own.
    pub operators: CustomOperators,
    /// Inputs for which the file has values of its own (ONNX's default values), and that are to be given all the same. Others
    /// of them are constants.
    pub inputs: Vec<String>,
}

/// A model: its graph as the file has it, and what the file says of itself. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) graph: Arc<Graph>,
    metadata: Arc<BTreeMap<String, String>>,
    warnings: Arc<[String]>,
}

impl Model {
    /// Reads an ONNX file, and the files beside it that hold its weights when it has such.
    ///
    /// # Errors
    /// When a file cannot be read or the model is broken or not supported; all unsupported parts are listed at once.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::load_with(path, &LoadOptions::default())
    }

    /// As [`Model::load`], with custom operators, or inputs that have default values.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_with(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Self, LoadError> {
        let path = path.as_ref();
        let bytes = read(path)?;
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let external = Directory::new(folder);
        Self::import(bytes, Some(&external), options)
    }

    /// Reads an ONNX model that lies in memory.
    ///
    /// # Errors
    /// When the model is broken or not supported.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Self, LoadError> {
        Self::from_bytes_with(bytes, &LoadOptions::default())
    }

    /// A model of a graph that was built in memory.
    pub fn from_graph(graph: Graph) -> Self {
        Self { graph: Arc::new(graph), metadata: Arc::default(), warnings: Arc::new([]) }
    }

    /// As [`Model::from_bytes`], with what [`LoadOptions`] adds.
    ///
    /// # Errors
    /// As [`Model::from_bytes`].
    pub fn from_bytes_with(bytes: impl Into<Bytes>, options: &LoadOptions) -> Result<Self, LoadError> {
        Self::import(bytes.into(), None, options)
    }

    fn import(
        bytes: Bytes,
        external: Option<&dyn ExternalData>,
        options: &LoadOptions,
    ) -> Result<Self, LoadError> {
        let (custom, inputs) = (Some(&options.operators), &options.inputs[..]);
        let options = onnx::ImportOptions { external, custom, inputs, ..Default::default() };
        let imported = onnx::import(bytes, &options)?;
        Ok(Self {
            graph: Arc::new(imported.graph),
            metadata: Arc::new(imported.metadata),
            warnings: imported.warnings.iter().map(ToString::to_string).collect(),
        })
    }

    /// The inputs in order.
    pub fn inputs(&self) -> Vec<ValueSpec> {
        let spec = |&id| {
            let value = self.graph.value(id);
            ValueSpec { name: value.name.clone(), ty: value.ty.clone() }
        };
        self.graph.inputs().iter().map(spec).collect()
    }

    /// The outputs in order.
    pub fn outputs(&self) -> Vec<ValueSpec> {
        let spec = |o: &armet_graph::Output| ValueSpec {
            name: o.name.clone(),
            ty: self.graph.value(o.value).ty.clone(),
        };
        self.graph.outputs().iter().map(spec).collect()
    }

    /// What the file says of itself: class names, character lists, authors.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// What was odd about the file and how it was taken.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The graph as imported, before any pass.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

fn read(path: &Path) -> Result<Bytes, LoadError> {
    read_file(path, LARGEST_FILE).map_err(|source| LoadError::Read { path: path.to_owned(), source })
}
