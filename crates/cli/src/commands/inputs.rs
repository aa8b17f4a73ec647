//! Values for a model's inputs: from files, pictures, or made up.

use std::path::{Path, PathBuf};

use anyhow::Context;
use armet::{
    Bool, CompileSettings, Compiled, ElementType, Model, Shape, Tensor, Value, ValueSpec, ValueType, npy,
};
use armet_vision::{Limits, Picture};
use half::f16;

use super::sizes::Sizes;
use crate::output::{Hint, Terminal};
use crate::picture::PictureOptions;

/// Where an input's value comes from.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Random,
    /// Nothing, for an optional input.
    Nothing,
    File(PathBuf),
}

/// One `--input`, as it was given: which part is a name depends on the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given(String);

impl Given {
    /// Made-up numbers for all inputs.
    pub(crate) fn random() -> Self {
        Self("random".to_owned())
    }

    /// What may be the name of an input: all in front of any of the equals signs.
    pub(crate) fn possible_names(&self) -> impl Iterator<Item = String> + '_ {
        self.0.match_indices('=').map(|(at, _)| self.0[..at].to_owned())
    }
}

pub(crate) fn parse(text: &str) -> Result<Given, String> {
    if text.is_empty() || text.ends_with('=') {
        return Err("expected NAME=FILE, NAME=random, NAME=none, FILE or random".into());
    }
    Ok(Given(text.to_owned()))
}

impl Given {
    /// The input that is named, if one is, and the source. Names and files may both hold equals signs: the longest name
    /// that an input has is meant.
    fn split(&self, inputs: &[ValueSpec]) -> anyhow::Result<(Option<&str>, Source)> {
        let places = self.0.rmatch_indices('=').map(|(at, _)| (&self.0[..at], &self.0[at + 1..]));
        let named = places.into_iter().find(|(name, _)| inputs.iter().any(|input| input.name == *name));
        let (name, value) = match (named, self.0.split_once('=')) {
            (Some((name, value)), _) => (Some(name), value),
            (None, Some((name, _))) if !name.is_empty() && !Path::new(&self.0).exists() => {
                anyhow::bail!("the model has no input {name}; it has {}", names(inputs))
            }
            (None, _) => (None, self.0.as_str()),
        };
        let source = match value {
            "random" => Source::Random,
            "none" => Source::Nothing,
            file => Source::File(file.into()),
        };
        Ok((name, source))
    }
}

fn names(inputs: &[ValueSpec]) -> String {
    let names: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The value for each input, and what its open dimensions are.
pub(crate) struct Gathered {
    pub(crate) values: Vec<(String, Value)>,
    pub(crate) sizes: Sizes,
}

/// The value for each input of the model, in order. Files are read before numbers are made up: what they say of a
/// dimension holds for all inputs that have it.
pub(crate) fn gather(
    (model, compiled): (&Model, &Compiled),
    settings: &CompileSettings,
    given: &[Given],
    pictures: &PictureOptions,
    terminal: &mut Terminal,
) -> anyhow::Result<Gathered> {
    let inputs = compiled.inputs();
    let given = given.iter().map(|one| one.split(&inputs)).collect::<anyhow::Result<Vec<_>>>()?;
    let is_for_one =
        |(name, source): &(Option<&str>, Source)| name.is_none() && matches!(source, Source::File(_));
    if inputs.len() > 1 && given.iter().any(is_for_one) {
        let hint = format!("name the input: --input NAME=FILE with one of {}", names(&inputs));
        return Err(Hint::new("the model has several inputs and the file is for one of them", hint).into());
    }
    let mut gatherer =
        Gatherer { sizes: Sizes::new(model, settings)?, settings, pictures, terminal, has_picture: false };
    let declared = model.inputs();
    let mut values: Vec<Option<Value>> = Vec::new();
    let mut sources: Vec<Vec<&Source>> = Vec::new();
    for input in &inputs {
        let declared = declared.iter().find(|declared| declared.name == input.name).unwrap_or(input);
        let of = |wanted| given.iter().filter(move |(name, _)| *name == wanted).map(|(_, source)| source);
        let mut found: Vec<&Source> = of(Some(&input.name)).collect();
        if found.is_empty() {
            found = of(None).collect();
        }
        if found.len() > 1 && !matches!(input.ty, ValueType::Sequence(_)) {
            anyhow::bail!("input {} was given {} times; give it once", input.name, found.len());
        }
        let is_made_up = matches!(found.as_slice(), [Source::Random]) && input.ty.tensor().is_some();
        values.push(if is_made_up { None } else { Some(gatherer.value(&found, input, declared)?) });
        sources.push(found);
    }
    if let Some(option) = pictures.first_given().filter(|_| !gatherer.has_picture) {
        let advice =
            if option == "--size" { "; sizes of made-up inputs are set with --dim or --shape" } else { "" };
        anyhow::bail!("{option} is for pictures, and no input is given as one{advice}");
    }
    let mut all = Vec::with_capacity(inputs.len());
    for (input, value) in inputs.iter().zip(values) {
        let value = match value {
            Some(value) => value,
            None => made_up(input, &mut gatherer.sizes)?.into(),
        };
        all.push((input.name.clone(), value));
    }
    let sizes = gatherer.sizes;
    sizes.tell(terminal);
    Ok(Gathered { values: all, sizes })
}

/// The types of tensors among these values; other values have a place that stands for nothing.
pub(crate) fn types(values: &[(String, Value)]) -> Vec<(ElementType, Shape)> {
    let ty = |(_, value): &(String, Value)| match value {
        Value::Tensor(tensor) => (tensor.element(), tensor.shape().clone()),
        _ => (ElementType::F32, Shape::scalar()),
    };
    values.iter().map(ty).collect()
}

struct Gatherer<'a> {
    sizes: Sizes,
    settings: &'a CompileSettings,
    pictures: &'a PictureOptions,
    terminal: &'a mut Terminal,
    has_picture: bool,
}

impl Gatherer<'_> {
    /// The value of an input from what was given for it.
    fn value(
        &mut self,
        sources: &[&Source],
        input: &ValueSpec,
        declared: &ValueSpec,
    ) -> anyhow::Result<Value> {
        match &input.ty {
            ValueType::Tensor(_) => Ok(match sources.first() {
                Some(Source::Random) => made_up(input, &mut self.sizes)?.into(),
                Some(Source::File(path)) => self.read(path, input, declared)?.into(),
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
                    // The items of a sequence need not have one shape.
                    items.push(self.value(&[source], &item, &untied(&item))?);
                }
                Ok(Value::Sequence(items))
            }
            ValueType::Optional(inner) => {
                let item = ValueSpec { name: input.name.clone(), ty: (**inner).clone() };
                let is_there = sources.iter().any(|source| matches!(source, Source::File(_)));
                let inner = is_there.then(|| self.value(sources, &item, &untied(&item))).transpose()?;
                Ok(Value::Optional(inner.map(Box::new)))
            }
        }
    }

    fn read(&mut self, path: &Path, input: &ValueSpec, declared: &ValueSpec) -> anyhow::Result<Tensor> {
        let has_extension =
            |wanted: &str| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(wanted));
        let shown = path.display();
        let is_picture = ["png", "jpg", "jpeg"].into_iter().any(has_extension);
        let what = format!("cannot read {}{shown}", if is_picture { "picture " } else { "" });
        let bytes = armet::read_file(path, LARGEST_INPUT).context(what.clone())?;
        let tensor = if has_extension("npy") || bytes.starts_with(NPY_MARK) {
            npy::read(&bytes).context(what)?
        } else if bytes.starts_with(b"PK") {
            let hint = "save one of its arrays with numpy.save";
            return Err(
                Hint::new(format!("{shown} is an archive (.npz?), and an input is one array"), hint).into()
            );
        } else {
            let what = if is_picture {
                what
            } else {
                format!("cannot read {shown} as an array (.npy) or a picture")
            };
            let picture = Picture::decode(&bytes, &Limits::default()).context(what)?;
            self.has_picture = true;
            self.pictures.prepare(&picture, &self.sizes.apply(input), self.terminal)?.0
        };
        let asked = self.settings.shapes.iter().find(|(name, _)| *name == input.name);
        if let Some((name, shape)) = asked.filter(|(_, shape)| shape[..] != tensor.shape()[..]) {
            anyhow::bail!(
                "--shape gives input {name} the shape {}, and {shown} has {}; leave --shape out",
                Shape::new(shape),
                tensor.shape()
            );
        }
        self.sizes.learn(declared, tensor.shape(), &format!("input {} ({shown})", input.name))?;
        Ok(tensor)
    }
}

/// The input without names of dimensions.
fn untied(input: &ValueSpec) -> ValueSpec {
    let element = input.element().unwrap_or(ElementType::F32);
    ValueSpec { name: input.name.clone(), ty: armet::TensorType::unranked(element).into() }
}

/// An array's file is at most this long.
const LARGEST_INPUT: u64 = 1 << 33;
/// What the files of arrays begin with.
const NPY_MARK: &[u8] = b"\x93NUMPY";

/// A value that is the same on every machine: fractions that repeat after 255, or 0 and 1 in turn for integers.
fn made_up(input: &ValueSpec, sizes: &mut Sizes) -> anyhow::Result<Tensor> {
    let ty = input.ty.tensor().with_context(|| format!("input {} is no tensor", input.name))?;
    let dims = ty.dims.as_ref().with_context(|| {
        format!("input {} has no declared rank; give its shape with --shape {}=SIZES", input.name, input.name)
    })?;
    let shape = sizes.complete(dims);
    fill(ty.element, shape).with_context(|| format!("cannot make up input {}", input.name))
}

/// More numbers than this are not made up.
const MOST_MADE_UP: usize = 1 << 28;

fn fill(element: ElementType, shape: Shape) -> anyhow::Result<Tensor> {
    let count = shape.checked_len().filter(|&n| n < MOST_MADE_UP);
    let count = count.with_context(|| format!("{shape} is too large to be made up; give a .npy file"))?;
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
        ElementType::I16 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as i16).collect::<Vec<i16>>())?,
        ElementType::U16 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as u16).collect::<Vec<u16>>())?,
        ElementType::U32 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as u32).collect::<Vec<u32>>())?,
        ElementType::U64 => Tensor::new(shape, &(0..count).map(|i| (i % 2) as u64).collect::<Vec<u64>>())?,
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
    fn the_longest_name_of_an_input_is_meant() {
        let input = |name: &str| ValueSpec {
            name: name.to_owned(),
            ty: armet::TensorType::unranked(ElementType::F32).into(),
        };
        let inputs = [input("x"), input("x=y")];
        let file = |path: &str| Source::File(path.into());
        for (text, name, source) in [
            ("random", None, Source::Random),
            ("x=random", Some("x"), Source::Random),
            ("a/b.npy", None, file("a/b.npy")),
            ("x=none", Some("x"), Source::Nothing),
            ("x=a=b.npy", Some("x"), file("a=b.npy")),
            ("x=y=a.npy", Some("x=y"), file("a.npy")),
        ] {
            assert_eq!(parse(text).unwrap().split(&inputs).unwrap(), (name, source), "{text}");
        }
        let error = parse("z=a=b.npy").unwrap().split(&inputs).unwrap_err().to_string();
        assert_eq!(error, "the model has no input z; it has x, x=y");
        assert!(parse("x=").is_err());
    }

    #[test]
    fn integers_get_zero_and_one() {
        let tensor = fill(ElementType::I64, Shape::from([3])).unwrap();
        assert_eq!(tensor.to_i64(), Some(vec![0, 1, 0]));
        for element in [ElementType::I16, ElementType::U16, ElementType::U32, ElementType::U64] {
            let tensor = fill(element, Shape::from([3])).unwrap();
            assert_eq!((tensor.element(), tensor.to_i64()), (element, Some(vec![0, 1, 0])));
        }
        assert!(fill(ElementType::F32, Shape::from([usize::MAX, 2])).is_err());
    }
}
