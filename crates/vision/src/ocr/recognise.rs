//! Lines of text as batches for the orientation classifier and the recogniser, and what their outputs say.

use super::{Network, OcrError, Settings};
use crate::picture::Picture;
use crate::planes::{Output, Planes};
use crate::presets::Preparation;
use crate::resize::Filter;

/// Height that both networks take lines at.
const LINE_HEIGHT: usize = 48;
/// Width that the classifier takes, and the least that the recogniser takes.
const CLASSIFIER_WIDTH: usize = 192;
const RECOGNISER_WIDTH: usize = 320;

/// What the columns of a recogniser's output stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Characters(Vec<String>);

/// What a line says, and how sure the recogniser is of it on average.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// The characters.
    pub text: String,
    /// Mean confidence of the characters, 0 to 1; nought where there are none.
    pub confidence: f64,
}

fn proportion(picture: &Picture) -> f64 {
    picture.width() as f64 / picture.height() as f64
}

/// Groups lines of like proportions, narrow ones first: indices into `lines`, `settings.batch` at a time.
pub fn batches(lines: &[Picture], settings: &Settings) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by(|&a, &b| proportion(&lines[a]).total_cmp(&proportion(&lines[b])));
    order.chunks(settings.batch.max(1)).map(<[usize]>::to_vec).collect()
}

/// The input of the orientation classifier for some of the lines.
pub fn classifier_input(lines: &[Picture], batch: &[usize]) -> Planes {
    input(lines, batch, CLASSIFIER_WIDTH)
}

/// The input of the recogniser for some of the lines: as wide as the widest needs.
pub fn recogniser_input(lines: &[Picture], batch: &[usize]) -> Planes {
    let least = RECOGNISER_WIDTH as f64 / LINE_HEIGHT as f64;
    let widest = batch.iter().map(|&index| proportion(&lines[index])).fold(least, f64::max);
    input(lines, batch, (LINE_HEIGHT as f64 * widest) as usize)
}

fn input(lines: &[Picture], batch: &[usize], width: usize) -> Planes {
    let preparation = Preparation::named("ppocr-rec").expect("a preset of this crate");
    let table = preparation.table().expect("a preset has usable scales");
    let mut planes = Planes {
        data: vec![0.0; batch.len() * 3 * LINE_HEIGHT * width],
        count: batch.len(),
        channels: 3,
        height: LINE_HEIGHT,
        width,
        layout: preparation.layout,
    };
    for (place, &index) in batch.iter().enumerate() {
        let line = &lines[index];
        let scaled_width = ((LINE_HEIGHT as f64 * proportion(line)).ceil() as usize).clamp(1, width);
        let scaled = line.resized(scaled_width, LINE_HEIGHT, Filter::Linear);
        preparation.write(&mut planes, place, &scaled, &table, (0, 0), [0.0; 3]);
    }
    planes
}

/// Turns those lines of a batch by 180 degrees that the classifier's output says stand on their head; which ones.
pub fn turn(
    lines: &mut [Picture],
    batch: &[usize],
    output: &Output<'_>,
    settings: &Settings,
) -> Result<Vec<usize>, OcrError> {
    let expected = "[lines, 2] scores, upright and upside down";
    if *output.shape != [batch.len(), 2] || output.data.len() != 2 * batch.len() {
        return Err(OcrError::wrong(Network::Classifier, output, expected));
    }
    let upside_down = |scores: &[f32; 2]| scores[1] > scores[0] && scores[1] > settings.turn_confidence;
    let turned: Vec<usize> = batch
        .iter()
        .zip(output.data.as_chunks::<2>().0)
        .filter(|(_, scores)| upside_down(scores))
        .map(|(&index, _)| index)
        .collect();
    for &index in &turned {
        lines[index] = lines[index].rotated_half();
    }
    Ok(turned)
}

impl Characters {
    /// The characters of a recogniser, one a line, as it carries them in its metadata under `character`: a blank is
    /// put before them and a space after.
    pub fn new(lines: &str) -> Result<Self, OcrError> {
        if lines.is_empty() {
            return Err(OcrError::NoCharacters);
        }
        let mut all = vec![String::new()];
        all.extend(lines.lines().map(str::to_owned));
        all.push(" ".to_owned());
        Ok(Self(all))
    }

    /// How many columns the recogniser's output has.
    pub fn columns(&self) -> usize {
        self.0.len()
    }

    /// What each line of a batch says: the likeliest column of each step, repeats and blanks left out.
    pub fn decode(&self, output: &Output<'_>) -> Result<Vec<Text>, OcrError> {
        let expected = "[lines, steps, characters] scores";
        let &[lines, steps, columns] = output.shape else {
            return Err(OcrError::wrong(Network::Recogniser, output, expected));
        };
        if columns != self.columns() {
            return Err(OcrError::CharacterCount { columns, characters: self.columns() });
        }
        if !output.is_filled() {
            return Err(OcrError::wrong(Network::Recogniser, output, expected));
        }
        let line = |index: usize| {
            let mut text = String::new();
            let (mut sum, mut count, mut before) = (0.0, 0usize, 0);
            for scores in output.data[index * steps * columns..][..steps * columns].chunks_exact(columns) {
                let (best, score) = likeliest(scores);
                if best != 0 && best != before {
                    text.push_str(&self.0[best]);
                    sum += f64::from(score);
                    count += 1;
                }
                before = best;
            }
            Text { text, confidence: if count == 0 { 0.0 } else { sum / count as f64 } }
        };
        Ok((0..lines).map(line).collect())
    }
}

/// The place and value of the highest score; the first of equals.
fn likeliest(scores: &[f32]) -> (usize, f32) {
    scores.iter().enumerate().fold(
        (0, f32::NEG_INFINITY),
        |best, (place, &score)| {
            if score > best.1 { (place, score) } else { best }
        },
    )
}
