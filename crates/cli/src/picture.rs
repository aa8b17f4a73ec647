//! Pictures as inputs of models.

use std::path::Path;

use anyhow::Context;
use armet::{ElementType, Tensor, ValueSpec};
use armet_vision::presets::{Placement, Preparation};
use armet_vision::{Limits, Picture, Planes};
use clap::Args;

use crate::output::Terminal;

/// How pictures become inputs.
#[derive(Debug, Args)]
pub(crate) struct PictureOptions {
    /// How pictures are resized and normalised: imagenet, unit, yolo, ppocr-det, ppocr-rec, ppocr-cls, picodet, mtcnn, raw.
    #[arg(long)]
    pub(crate) preset: Option<String>,
    /// Subtracted from each channel after dividing by the divisor: 0.485,0.456,0.406.
    #[arg(long, value_delimiter = ',', value_name = "R,G,B")]
    pub(crate) mean: Vec<f64>,
    /// Divides each channel last.
    #[arg(long, value_delimiter = ',', value_name = "R,G,B")]
    pub(crate) std: Vec<f64>,
    /// Divides each byte first [default: the preset's, mostly 255].
    #[arg(long)]
    pub(crate) divisor: Option<f64>,
    /// Width and height for inputs that leave them open: 640x480.
    #[arg(long, value_name = "WxH")]
    pub(crate) size: Option<String>,
}

pub(crate) fn open(path: &Path) -> anyhow::Result<Picture> {
    Picture::open(path, &Limits::default()).with_context(|| format!("cannot read picture {}", path.display()))
}

pub(crate) fn tensor(planes: &Planes) -> anyhow::Result<Tensor> {
    Ok(Tensor::new(planes.shape(), &planes.data)?)
}

fn three(values: &[f64], what: &str) -> anyhow::Result<Option<[f64; 3]>> {
    Ok(match *values {
        [] => None,
        [all] => Some([all; 3]),
        [a, b, c] => Some([a, b, c]),
        _ => anyhow::bail!("--{what} takes one number or three"),
    })
}

impl PictureOptions {
    /// The input that a picture becomes, and where the picture lies in it.
    pub(crate) fn prepare(
        &self,
        picture: &Picture,
        input: &ValueSpec,
        terminal: &mut Terminal,
    ) -> anyhow::Result<(Tensor, Placement)> {
        let dims: Vec<Option<usize>> =
            input.dims().map(|d| d.iter().map(armet::Dim::fixed).collect()).unwrap_or_default();
        let mut preparation = match &self.preset {
            Some(name) => Preparation::named(name)?,
            None => {
                let guess = Preparation::guess(&dims)?;
                terminal.note(format_args!("note: input {}: {}", input.name, guess.reason));
                guess.preparation
            }
        };
        if let Some(mean) = three(&self.mean, "mean")? {
            preparation.mean = mean;
        }
        if let Some(std) = three(&self.std, "std")? {
            preparation.std = std;
        }
        if let Some(divisor) = self.divisor {
            preparation.divisor = divisor;
        }
        let stated = preparation.size_in(&dims);
        let given = self.size.as_deref().map(parse_size).transpose()?;
        let (width, height) = given.map_or(stated, |(w, h)| (Some(w), Some(h)));
        let prepared = preparation.apply(picture, width, height)?;
        let tensor = tensor(&prepared.planes)?;
        let tensor = match input.element() {
            Some(ElementType::F32) | None => tensor,
            Some(ElementType::U8) => {
                let bytes: Vec<u8> = prepared.planes.data.iter().map(|v| v.round() as u8).collect();
                Tensor::new(tensor.shape().clone(), &bytes)?
            }
            Some(other) => anyhow::bail!("input {} holds {other}; give it as a .npy file", input.name),
        };
        Ok((tensor, prepared.placement))
    }
}

fn parse_size(text: &str) -> anyhow::Result<(usize, usize)> {
    let (width, height) =
        text.split_once(['x', ',']).context("--size takes WIDTHxHEIGHT, for instance 640x480")?;
    Ok((width.trim().parse()?, height.trim().parse()?))
}
