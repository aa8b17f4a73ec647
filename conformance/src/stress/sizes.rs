//! A model at one random legal size after the other in one session, held to sessions that know no other size.

use std::path::Path;

use armet::{CompileSettings, Compiled, Dim, Engine, Model, Session, ValueRef, ValueSpec};
use armet_graph::{Numbers, Value};
use armet_tensor::{ElementType, Tensor};
use serde::Serialize;

use super::{angle, gap, resident_bytes};

/// How the free dimensions of a model may be chosen.
#[derive(Debug)]
pub struct Sizes {
    /// Its id in the table of models.
    pub model: &'static str,
    /// For each named dimension its least and its largest length and the step between.
    pub dims: &'static [(&'static str, usize, usize, usize)],
    /// Dimensions that are as long as another one, by another name.
    pub same: &'static [(&'static str, &'static str)],
    /// How results are held to the meaning.
    pub judge: Judge,
    /// How far onnxruntime 1.32 with its optimisations is from itself without them on such inputs, as a share of the range,
    /// where that is more than the order of sums explains.
    pub spread: f64,
}

/// How the results of the cpu backend are held to those of the meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judge {
    /// By the largest gap as a share of the range.
    #[default]
    Gap,
    /// By the angle between them, one minus the cosine: a quantised model rounds a number that lies between two steps up or
    /// down by the last bit of a float, and layers later that has grown to whole steps.
    Angle,
}

const fn sizes(model: &'static str, dims: &'static [(&'static str, usize, usize, usize)]) -> Sizes {
    Sizes { model, dims, same: &[], judge: Judge::Gap, spread: 0.0 }
}

const fn quantised(model: &'static str, dims: &'static [(&'static str, usize, usize, usize)]) -> Sizes {
    Sizes { judge: Judge::Angle, ..sizes(model, dims) }
}

const TOKENS: &[(&str, usize, usize, usize)] = &[("batch", 1, 3, 1), ("sequence", 1, 256, 1)];
const PICTURES: &[(&str, usize, usize, usize)] = &[("batch", 1, 4, 1)];

/// Models with free dimensions, and which of their sizes are legal: pictures of up to 320 a side, sequences of up to 256.
/// Where the file names a number of pictures and fixes their size, the number is what changes.
pub const MODELS: &[Sizes] = &[
    sizes("minilm_fp32", TOKENS),
    quantised("minilm_int8", TOKENS),
    quantised("minilm_dynq", TOKENS),
    sizes("mtcnn_pnet", &[("N", 1, 2, 1), ("M1", 12, 320, 1), ("M2", 12, 320, 1)]),
    sizes("mtcnn_rnet", &[("N", 1, 64, 1)]),
    sizes("mtcnn_onet", &[("N", 1, 64, 1)]),
    sizes("ppocr2_cls", &[("x_0", 1, 3, 1), ("x_2", 48, 48, 1), ("x_3", 32, 320, 1)]),
    sizes(
        "ppocr4_det",
        &[
            ("p2o.DynamicDimension.0", 1, 2, 1),
            ("p2o.DynamicDimension.1", 32, 320, 32),
            ("p2o.DynamicDimension.2", 32, 320, 32),
        ],
    ),
    sizes(
        "ppocr4_rec",
        &[("p2o.DynamicDimension.0", 1, 2, 1), ("x_2", 48, 48, 1), ("p2o.DynamicDimension.1", 16, 320, 1)],
    ),
    Sizes {
        same: &[("input_0", "state_1")],
        ..sizes("silero_vad", &[("input_0", 1, 4, 1), ("input_1", 576, 576, 1)])
    },
    sizes("silero_vad_noif", &[("batch", 1, 4, 1), ("sequence", 576, 576, 1)]),
    sizes("silero_vad_half", &[("batch", 1, 4, 1), ("sequence", 576, 576, 1)]),
    sizes("silero_vad_seq", &[("sequence_length", 1, 256, 1)]),
    sizes(
        "lac_gru",
        &[
            ("DynamicDimension.0", 1, 1, 1),
            ("DynamicDimension.1", 1, 256, 1),
            ("DynamicDimension.2", 1, 1, 1),
        ],
    ),
    Sizes { spread: 1.2e-4, ..sizes("piper_joe", &[("batch_size", 1, 1, 1), ("phonemes", 4, 64, 1)]) },
    sizes("oww_mel", &[("batch_size", 1, 2, 1), ("samples", 640, 6400, 1)]),
    sizes("oww_embed", &[("unk__314", 1, 8, 1)]),
    sizes("magika", &[("unk__214", 1, 8, 1)]),
    // It takes logarithms of powers, and noise has some next to zero.
    Sizes { spread: 1.4e-3, ..sizes("basic_pitch", &[("unk__749", 1, 3, 1)]) },
    sizes("mobilenet_v2", PICTURES),
    quantised("mobilenet_v2_qdq", PICTURES),
    quantised("mobilenet_v2_qop", PICTURES),
    sizes("mobilenet_v3_small", PICTURES),
    sizes("resnet50", PICTURES),
    quantised("resnet50_qdq", PICTURES),
    sizes("vit_s_focus", &[("batch_size", 1, 2, 1)]),
];

/// The largest gap of float models: sums in another order. For models with a spread of their own, twice that where it is
/// more.
const LARGEST_GAP: f64 = 1e-4;
/// The largest angle of quantised models; noise as input leaves them little else to tell.
const LARGEST_ANGLE: f64 = 2e-2;

/// What was seen.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// The model.
    pub model: String,
    /// Sizes run, all in one session.
    pub sizes: usize,
    /// Sizes whose results differ from those of a fresh session in any bit.
    pub differ_from_fresh: usize,
    /// Small sizes that were also run by meaning.
    pub by_meaning: usize,
    /// The largest share by which one of these is off.
    pub largest_gap: f64,
    /// The largest angle by which one of these is off: one minus the cosine.
    pub largest_angle: f64,
    /// How the model is held to the meaning.
    pub judge: Judge,
    /// Whether that is within what the model is held to.
    pub means_the_same: bool,
    /// Bytes resident right after the largest size, and at the end.
    pub resident: (usize, usize),
    /// Weight tensors packed after the first size, and at the end.
    pub packed: (usize, usize),
    /// What went wrong first.
    pub fault: Option<String>,
}

/// Runs a model at `count` sizes, and at the smallest `by_meaning` of them also by meaning.
///
/// # Errors
/// When the model cannot be run at all.
pub fn check(sizes: &Sizes, file: &Path, count: usize, by_meaning: usize) -> Result<Seen, String> {
    let engine = |name: &str| Engine::builder().threads(1).backend(name).build().map_err(|e| e.to_string());
    let (cpu, reference) = (engine("cpu")?, engine("reference")?);
    let model = Model::load(file).map_err(|e| e.to_string())?;
    let compile = |engine: &Engine| {
        engine.compile(&model, &CompileSettings::default()).map_err(|e| format!("does not compile: {e}"))
    };
    let compiled = compile(&cpu)?;
    let specs = model.inputs();
    let mut random = Numbers::new(77);
    let chosen: Vec<Chosen> = (0..count).map(|_| choose(sizes, &mut random)).collect();
    let work = |chosen: &Chosen| chosen.iter().map(|(_, length)| *length).product::<usize>();
    let largest = (0..chosen.len()).max_by_key(|&i| work(&chosen[i])).unwrap_or(0);
    let mut seen =
        Seen { model: sizes.model.to_owned(), sizes: count, judge: sizes.judge, ..Seen::default() };
    let mut hashes = Vec::with_capacity(count);
    {
        let mut session = compiled.session();
        for (index, chosen) in chosen.iter().enumerate() {
            let feed = feed(&specs, sizes.same, chosen, index as u64);
            hashes.push(hash(&results(&mut session, &feed).map_err(|e| told(chosen, &e))?));
            if index == 0 {
                seen.packed.0 = compiled.packed_weights();
            }
            if index == largest {
                seen.resident.0 = resident_bytes()?;
            }
        }
        seen.resident.1 = resident_bytes()?;
        seen.packed.1 = compiled.packed_weights();
    }
    for (index, chosen) in chosen.iter().enumerate() {
        let feed = feed(&specs, sizes.same, chosen, index as u64);
        let fresh = results(&mut compile(&cpu)?.session(), &feed).map_err(|e| told(chosen, &e))?;
        if hash(&fresh) != hashes[index] {
            seen.differ_from_fresh += 1;
            seen.fault.get_or_insert_with(|| told(chosen, "other bits than a fresh session's"));
        }
    }
    let mut small: Vec<usize> = (0..chosen.len()).collect();
    small.sort_by_key(|&i| work(&chosen[i]));
    small.dedup_by_key(|i| chosen[*i].clone());
    let meaning = compile(&reference)?;
    for &index in small.iter().take(by_meaning) {
        let feed = feed(&specs, sizes.same, &chosen[index], index as u64);
        let (gap, angle) = against(&compiled, &meaning, &feed).map_err(|e| told(&chosen[index], &e))?;
        seen.by_meaning += 1;
        seen.largest_gap = seen.largest_gap.max(gap);
        seen.largest_angle = seen.largest_angle.max(angle);
    }
    seen.means_the_same = match sizes.judge {
        Judge::Gap => seen.largest_gap <= LARGEST_GAP.max(2.0 * sizes.spread),
        Judge::Angle => seen.largest_angle <= LARGEST_ANGLE,
    };
    Ok(seen)
}

type Chosen = Vec<(&'static str, usize)>;

fn choose(sizes: &Sizes, random: &mut Numbers) -> Chosen {
    let one = |&(name, least, most, step): &(&'static str, usize, usize, usize)| {
        (name, least + step * random.int(0, ((most - least) / step) as i64) as usize)
    };
    sizes.dims.iter().map(one).collect()
}

fn told(chosen: &Chosen, what: &str) -> String {
    let dims: Vec<String> = chosen.iter().map(|(name, length)| format!("{name}={length}")).collect();
    format!("{}: {what}", dims.join(" "))
}

fn feed(specs: &[ValueSpec], same: &[(&str, &str)], chosen: &Chosen, seed: u64) -> Vec<(String, Value)> {
    let length = |name: &str| {
        let name = same.iter().find(|(_, other)| *other == name).map_or(name, |(first, _)| first);
        chosen.iter().find(|(n, _)| *n == name).map_or(1, |(_, length)| *length)
    };
    let longest = chosen.iter().map(|(_, length)| *length).max().unwrap_or(1);
    let mut random = Numbers::new(seed);
    let value = |spec: &ValueSpec| {
        let dims = spec.dims().unwrap_or_default().iter();
        let shape: Vec<usize> = dims
            .map(|dim| match dim {
                Dim::Fixed(length) => *length,
                Dim::Symbol(name) => length(name),
                _ => 1,
            })
            .collect();
        let tensor = match (spec.element(), spec.name.as_str()) {
            // Numbers that say how long or fast the others are.
            (Some(ElementType::I64), "length" | "input_lengths") => filled(&shape, longest as i64),
            (Some(ElementType::I64), "token_type_ids") => random.ints::<i64>(shape, 0, 1),
            (Some(ElementType::I64), "attention_mask") => filled(&shape, 1),
            // Samples in a second.
            (Some(ElementType::I64), "sr") => filled(&shape, 16000),
            (Some(ElementType::I64), _) => random.ints::<i64>(shape, 0, 99),
            (Some(ElementType::I32), _) => random.ints::<i32>(shape, 0, 255),
            (_, "scales") => Tensor::vector(&[0.667f32, 1.0, 0.8]),
            _ => random.floats(shape, -1.0, 1.0),
        };
        (spec.name.clone(), tensor.into())
    };
    specs.iter().map(value).collect()
}

fn filled(shape: &[usize], value: i64) -> Tensor {
    let count = shape.iter().product();
    Tensor::new(shape, &vec![value; count]).expect("the count is the product of the shape")
}

fn results(session: &mut Session, feed: &[(String, Value)]) -> Result<Vec<Value>, String> {
    let feed: Vec<(&str, ValueRef<'_>)> =
        feed.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
    let outputs = session.run(&feed).map_err(|e| e.to_string())?;
    (0..outputs.len())
        .map(|i| outputs.at(i).map(ValueRef::to_value).ok_or_else(|| format!("output {i} is missing")))
        .collect()
}

fn against(cpu: &Compiled, meaning: &Compiled, feed: &[(String, Value)]) -> Result<(f64, f64), String> {
    let (found, wanted) = (results(&mut cpu.session(), feed)?, results(&mut meaning.session(), feed)?);
    let largest = |measure: fn(&Value, &Value) -> f64| {
        wanted.iter().zip(&found).map(|(a, b)| measure(a, b)).fold(0.0, f64::max)
    };
    Ok((largest(gap), largest(angle)))
}

/// Types, shapes and bytes as one number.
pub(super) fn hash(values: &[Value]) -> u64 {
    use std::hash::{Hash, Hasher};
    let mut hasher = std::collections::hash_map::DefaultHasher::new();
    for value in values {
        match value.tensor() {
            Some(tensor) => {
                (tensor.element().to_string(), tensor.shape().dims(), tensor.bytes()).hash(&mut hasher)
            }
            None => format!("{value:?}").hash(&mut hasher),
        }
    }
    hasher.finish()
}
