//! A model at one random legal size after the other in one session, held to sessions that know no other size.

use std::path::Path;

use armet::{CompileSettings, Compiled, Dim, Engine, Model, Session, ValueRef, ValueSpec};
use armet_graph::{Numbers, Value};
use armet_tensor::{ElementType, Tensor};
use serde::Serialize;

use super::{gap, resident_bytes};

/// How the free dimensions of a model may be chosen.
#[derive(Debug)]
pub struct Sizes {
    /// Its id in the table of models.
    pub model: &'static str,
    /// For each named dimension its least and its largest length and the step between.
    pub dims: &'static [(&'static str, usize, usize, usize)],
}

/// Models with free dimensions, and which of their sizes are legal: pictures of up to 320 a side, sequences of up to 256.
pub const MODELS: &[Sizes] = &[
    Sizes { model: "minilm_fp32", dims: &[("batch", 1, 3, 1), ("sequence", 1, 256, 1)] },
    Sizes { model: "minilm_int8", dims: &[("batch", 1, 3, 1), ("sequence", 1, 256, 1)] },
    Sizes { model: "minilm_dynq", dims: &[("batch", 1, 3, 1), ("sequence", 1, 256, 1)] },
    Sizes { model: "mtcnn_pnet", dims: &[("N", 1, 2, 1), ("M1", 12, 320, 1), ("M2", 12, 320, 1)] },
    Sizes { model: "mtcnn_rnet", dims: &[("N", 1, 64, 1)] },
    Sizes { model: "mtcnn_onet", dims: &[("N", 1, 64, 1)] },
    Sizes { model: "ppocr2_cls", dims: &[("x_0", 1, 3, 1), ("x_2", 48, 48, 1), ("x_3", 32, 320, 1)] },
    Sizes {
        model: "ppocr4_det",
        dims: &[
            ("p2o.DynamicDimension.0", 1, 2, 1),
            ("p2o.DynamicDimension.1", 32, 320, 32),
            ("p2o.DynamicDimension.2", 32, 320, 32),
        ],
    },
    Sizes {
        model: "ppocr4_rec",
        dims: &[("DynamicDimension.0", 1, 2, 1), ("DynamicDimension.1", 16, 320, 1)],
    },
    Sizes { model: "silero_vad_seq", dims: &[("sequence_length", 1, 256, 1)] },
    Sizes {
        model: "lac_gru",
        dims: &[
            ("DynamicDimension.0", 1, 1, 1),
            ("DynamicDimension.1", 1, 256, 1),
            ("DynamicDimension.2", 1, 1, 1),
        ],
    },
    Sizes { model: "piper_joe", dims: &[("batch_size", 1, 1, 1), ("phonemes", 4, 64, 1)] },
    Sizes { model: "oww_mel", dims: &[("batch_size", 1, 2, 1), ("samples", 640, 6400, 1)] },
    Sizes { model: "magika", dims: &[("unk__214", 1, 8, 1)] },
    Sizes { model: "oww_embed", dims: &[("unk__314", 1, 8, 1)] },
    Sizes { model: "mobilenet_v2", dims: &[("batch", 1, 4, 1)] },
    Sizes { model: "mobilenet_v3_small", dims: &[("batch", 1, 4, 1)] },
    Sizes { model: "mobilenet_v2_qdq", dims: &[("batch", 1, 4, 1)] },
];

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
    let mut seen = Seen { model: sizes.model.to_owned(), sizes: count, ..Seen::default() };
    let mut hashes = Vec::with_capacity(count);
    {
        let mut session = compiled.session();
        for (index, chosen) in chosen.iter().enumerate() {
            let feed = feed(&specs, chosen, index as u64);
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
        let feed = feed(&specs, chosen, index as u64);
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
        let feed = feed(&specs, &chosen[index], index as u64);
        let gap = against(&compiled, &meaning, &feed).map_err(|e| told(&chosen[index], &e))?;
        seen.by_meaning += 1;
        seen.largest_gap = seen.largest_gap.max(gap);
    }
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

fn feed(specs: &[ValueSpec], chosen: &Chosen, seed: u64) -> Vec<(String, Value)> {
    let length = |name: &str| chosen.iter().find(|(n, _)| *n == name).map_or(1, |(_, length)| *length);
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

fn against(cpu: &Compiled, meaning: &Compiled, feed: &[(String, Value)]) -> Result<f64, String> {
    let (found, wanted) = (results(&mut cpu.session(), feed)?, results(&mut meaning.session(), feed)?);
    Ok(wanted.iter().zip(&found).map(|(a, b)| gap(a, b)).fold(0.0, f64::max))
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
