//! What is known of a model's open dimensions: said by options, seen in given values, and assumed for the rest.

use std::collections::BTreeMap;

use armet::{CompileSettings, Dim, Model, Shape, TensorType, ValueSpec, ValueType};
use serde_json::{Value, json};

use crate::output::{Terminal, clean};

/// The size of what nobody states.
pub(crate) const ASSUMED: usize = 1;

struct Known {
    size: usize,
    said_by: String,
}

/// Dimensions without a size, for people.
pub(crate) struct Open {
    /// Their names.
    pub(crate) names: String,
    /// How to say their sizes.
    pub(crate) advice: String,
}

/// Sizes of dimensions by name: one name is one size, wherever it stands.
pub(crate) struct Sizes {
    known: BTreeMap<String, Known>,
    assumed: BTreeMap<String, usize>,
    /// Whether more than the first dimension of an input, mostly a batch, was assumed.
    inner: bool,
}

impl Sizes {
    /// What the options say.
    pub(crate) fn new(model: &Model, settings: &CompileSettings) -> anyhow::Result<Self> {
        let mut sizes = Self { known: BTreeMap::new(), assumed: BTreeMap::new(), inner: false };
        for (name, size) in &settings.dims {
            sizes.know(name, *size, &format!("--dim {name}={size}"))?;
        }
        let inputs = model.inputs();
        for (name, shape) in &settings.shapes {
            // A name that no input has is refused when the model is compiled.
            let Some(input) = inputs.iter().find(|input| input.name == *name) else { continue };
            let given = Shape::new(shape);
            match input.dims() {
                Some(dims) if dims.len() != shape.len() => anyhow::bail!(
                    "--shape gives input {name} the shape {given}; the model declares {}",
                    input.ty
                ),
                None if input.ty.tensor().is_none() => {
                    anyhow::bail!("--shape is for tensors, and input {name} is {}", input.ty)
                }
                _ => sizes.learn(input, shape, &format!("--shape {name}={given}"))?,
            }
        }
        Ok(sizes)
    }

    /// Takes note of a value's shape; `input` is as the model declares it.
    pub(crate) fn learn(&mut self, input: &ValueSpec, shape: &[usize], said_by: &str) -> anyhow::Result<()> {
        let Some(dims) = input.dims().filter(|dims| dims.len() == shape.len()) else { return Ok(()) };
        for (dim, &size) in dims.iter().zip(shape) {
            if let Dim::Symbol(name) = dim {
                self.know(name, size, said_by)?;
            }
        }
        Ok(())
    }

    fn know(&mut self, name: &str, size: usize, said_by: &str) -> anyhow::Result<()> {
        match self.known.get(name) {
            Some(known) if known.size != size => anyhow::bail!(
                "dimension {name} is {} by {} and {size} by {said_by}; a dimension has one size in all inputs",
                known.size,
                known.said_by
            ),
            Some(_) => {}
            None => {
                self.known.insert(name.to_owned(), Known { size, said_by: said_by.to_owned() });
            }
        }
        Ok(())
    }

    /// The input with all sizes that are known.
    pub(crate) fn apply(&self, input: &ValueSpec) -> ValueSpec {
        let mut input = input.clone();
        if let ValueType::Tensor(TensorType { dims: Some(dims), .. }) = &mut input.ty {
            for dim in dims {
                *dim = dim.substitute(&|name| self.known.get(name).map(|known| known.size));
            }
        }
        input
    }

    /// The shape of these dimensions, with what is not known assumed.
    pub(crate) fn complete(&mut self, dims: &[Dim]) -> Shape {
        dims.iter()
            .enumerate()
            .map(|(axis, dim)| {
                let dim = dim.substitute(&|name| self.known.get(name).map(|known| known.size));
                dim.fixed().unwrap_or_else(|| {
                    self.assumed.insert(dim.to_string(), ASSUMED);
                    self.inner |= axis > 0;
                    ASSUMED
                })
            })
            .collect()
    }

    /// Says in one line what was assumed.
    pub(crate) fn tell(&self, terminal: &mut Terminal) {
        if let Some(Open { names, advice }) = self.open() {
            terminal.note(format_args!("note: the model leaves {names} open, taken as {ASSUMED}; {advice}"));
        }
    }

    /// What was assumed, if anything was.
    pub(crate) fn open(&self) -> Option<Open> {
        let names: Vec<String> = self.assumed.keys().map(|name| clean(name)).collect();
        let advice = format!("set them with --dim {}=SIZE or --shape INPUT=SIZES", names.first()?);
        Some(Open { names: names.join(", "), advice })
    }

    /// Whether a size was assumed that is mostly larger: any but the first of an input, the batch.
    pub(crate) fn assumed_inner(&self) -> bool {
        self.inner
    }

    /// What was assumed, by name.
    pub(crate) fn as_json(&self) -> Value {
        json!(self.assumed)
    }
}
