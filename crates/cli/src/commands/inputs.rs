//! Values for a model's inputs: from files, pictures, or made up.

use std::path::{Path, PathBuf};

use anyhow::Context;
use armet::{Bool, Compiled, ElementType, Shape, Tensor, Value, ValueSpec, ValueType, npy};
use half::f16;

use crate::output::{Hint, Terminal};
use crate::picture::{self, PictureOptions};

/// Where an input's value comes from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Source {
    Random,
    /// Nothing, for an optional input.
    Nothing,
    File(PathBuf),
}

/// One `--input`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    /// `None` when the value is for the only input, or for all.
    pub(crate) name: Option<String>,
    pub(crate) source: Source,
}

pub(crate) fn parse(text: &str) -> Result<Given, String> {
    let (name, value) = match text.rsplit_once('=') {
        Some((name, value)) if !name.is_empty() => (Some(name.to_owned()), value),
        _ => (None, text),
    };
    if value.is_empty() {
        return Err("expected NAME=FILE, NAME=random, NAME=none, FILE or random".into());
    }
    let source = match value {
        "random" => Source::Random,
        "none" => Source::Nothing,
        file => Source::File(file.into()),
    };
    Ok(Given { name, source })
}

/// The value for each input of the model, in order.
pub(crate) fn gather(
    compiled: &Compiled,
    given: &[Given],
    pictures: &PictureOptions,
    terminal: &mut Terminal,
) -> anyhow::Result<Vec<(String, Value)>> {
    let inputs = compiled.inputs();
    let names = || inputs.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
    for one in given {
        if let Some(name) = &one.name
            && !inputs.iter().any(|i| i.name == *name)
        {
            anyhow::bail!("the model has no input {name}; it has {}", names());
        }
        if one.name.is_none() && matches!(one.source, Source::File(_)) && inputs.len() > 1 {
            let hint = format!("name the input: --input NAME=FILE with one of {}", names());
            return Err(
                Hint::new("the model has several inputs and the file is for one of them", hint).into()
            );
        }
    }
    inputs
        .iter()
        .map(|input| {
            let mut sources: Vec<&Source> =
                given.iter().filter(|g| g.name.as_deref() == Some(&input.name)).map(|g| &g.source).collect();
            if sources.is_empty() {
                sources.extend(given.iter().filter(|g| g.name.is_none()).map(|g| &g.source));
            }
            Ok((input.name.clone(), value(&sources, input, pictures, terminal)?))
        })
        .collect()
}

/// The types of tensors among these values; other values have a place that stands for nothing.
pub(crate) fn types(values: &[(String, Value)]) -> Vec<(ElementType, Shape)> {
    let ty = |(_, value): &(String, Value)| match value {
        Value::Tensor(tensor) => (tensor.element(), tensor.shape().clone()),
        _ => (ElementType::F32, Shape::scalar()),
    };
    values.iter().map(ty).collect()
}

/// The value of an input from what was given for it.
fn value(
    sources: &[&Source],
    input: &ValueSpec,
    pictures: &PictureOptions,
    terminal: &mut Terminal,
) -> anyhow::Result<Value> {
    match &input.ty {
        ValueType::Tensor(_) => Ok(match sources.first() {
            Some(Source::Random) => made_up(input, terminal)?.into(),
            Some(Source::File(path)) => read(path, input, pictures, terminal)?.into(),
            Some(Source::Nothing) => anyhow::bail!("input {} is not optional", input.name),
            None => {
                let hint = "give it with --input NAME=FILE (.npy, .png, .jpg) or --input random";
                return Err(Hint::new(format!("input {} was not given", input.name), hint).into());
            }
        }),
        ValueType::Sequence(inner) => {
            let item = ValueSpec { name: input.name.clone(), ty: (**inner).clone() };
            let mut items = Vec::new();
            for source in sources {
                let Source::File(_) = source else {
                    let hint = "give each item with --input NAME=FILE.npy";
                    return Err(Hint::new(format!("input {} is a sequence", input.name), hint).into());
                };
                items.push(value(&[source], &item, pictures, terminal)?);
            }
            Ok(Value::Sequence(items))
        }
        ValueType::Optional(inner) => {
            let item = ValueSpec { name: input.name.clone(), ty: (**inner).clone() };
            let is_there = sources.iter().any(|source| matches!(source, Source::File(_)));
            let inner = is_there.then(|| value(sources, &item, pictures, terminal)).transpose()?;
            Ok(Value::Optional(inner.map(Box::new)))
        }
    }
}

/// An array's file is at most this long.
const LARGEST_INPUT: u64 = 1 << 33;

fn read(
    path: &Path,
    input: &ValueSpec,
    pictures: &PictureOptions,
    terminal: &mut Terminal,
) -> anyhow::Result<Tensor> {
    let is_npy = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    if !is_npy {
        let picture = picture::open(path)?;
        return Ok(pictures.prepare(&picture, input, terminal)?.0);
    }
    let bytes =
        armet::read_file(path, LARGEST_INPUT).with_context(|| format!("cannot read {}", path.display()))?;
    npy::read(&bytes).with_context(|| format!("cannot read {}", path.display()))
}

/// A value that is the same on every machine: fractions that repeat after 255, or 0 and 1 in turn for integers.
pub(crate) fn made_up(input: &ValueSpec, terminal: &mut Terminal) -> anyhow::Result<Tensor> {
    let ty = input.ty.tensor().with_context(|| format!("input {} is no tensor", input.name))?;
    let dims = ty.dims.as_ref().with_context(|| {
        format!("input {} has no declared rank; give its shape with --shape {}=...", input.name, input.name)
    })?;
    if dims.iter().any(|d| d.fixed().is_none()) {
        let text: Vec<String> = dims.iter().map(ToString::to_string).collect();
        terminal.note(format_args!(
            "note: input {} is [{}]: open dimensions are taken as 1 (set them with --shape or --dim)",
            input.name,
            text.join(",")
        ));
    }
    let shape: Shape = dims.iter().map(|d| d.fixed().unwrap_or(1)).collect();
    fill(ty.element, shape).with_context(|| format!("cannot make up input {}", input.name))
}

pub(crate) fn fill(element: ElementType, shape: Shape) -> anyhow::Result<Tensor> {
    let count = shape.checked_len().filter(|&n| n < 1 << 32).context("the shape is too large")?;
    let fraction = |i: usize| (i * 37 % 255) as f32 / 255.0;
    Ok(match element {
        ElementType::F32 => Tensor::new(shape, &(0..count).map(fraction).collect::<Vec<f32>>())?,
        ElementType::F64 => {
            Tensor::new(shape, &(0..count).map(|i| f64::from(fraction(i))).collect::<Vec<f64>>())?
        }
        ElementType::F16 => {
            Tensor::new(shape, &(0..count).map(|i| f16::from_f32(fraction(i))).collect::<Vec<f16>>())?
        }
        ElementType::I64 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as i64).collect::<Vec<i64>>())?,
        ElementType::I32 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as i32).collect::<Vec<i32>>())?,
        ElementType::I8 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as i8).collect::<Vec<i8>>())?,
        ElementType::U8 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as u8).collect::<Vec<u8>>())?,
        ElementType::Bool => {
            Tensor::new(shape, &(0..count).map(|i| Bool::from(i % 2 == 1)).collect::<Vec<Bool>>())?
        }
        other => anyhow::bail!("no values can be made up for {other}; give a .npy file"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_named_or_not() {
        assert_eq!(parse("random").unwrap(), Given { name: None, source: Source::Random });
        let x = parse("x=random").unwrap();
        assert_eq!((x.name.as_deref(), x.source), (Some("x"), Source::Random));
        assert_eq!(parse("a/b.npy").unwrap().source, Source::File("a/b.npy".into()));
        assert_eq!(parse("x=none").unwrap().source, Source::Nothing);
        assert!(parse("x=").is_err());
    }

    #[test]
    fn integers_get_zero_and_one() {
        let tensor = fill(ElementType::I64, Shape::from([3])).unwrap();
        assert_eq!(tensor.to_i64(), Some(vec![0, 1, 0]));
        assert!(fill(ElementType::F32, Shape::from([usize::MAX, 2])).is_err());
    }
}
