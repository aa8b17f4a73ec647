//! Several sessions of one model at once.

use std::path::Path;

use armet::{CompileSettings, Engine, Model, ValueRef};
use armet_graph::{Numbers, Value};
use serde::Serialize;

use super::{resident_bytes, sizes};

/// What was seen.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// Sessions, each in a thread of its own.
    pub sessions: usize,
    /// Runs of each.
    pub runs: usize,
    /// Runs whose results differ in any bit from those of one session alone.
    pub differ: usize,
    /// Bytes of the model's file: about those of its weights.
    pub file: usize,
    /// Bytes of one session's arenas.
    pub arena: usize,
    /// Bytes resident after one session has run, and after all have.
    pub resident: (usize, usize),
    /// Weight tensors packed after one session has run, and after all have.
    pub packed: (usize, usize),
}

/// Runs `sessions` sessions of a model of pictures at once, each `runs` times.
///
/// # Errors
/// When the model cannot be run.
pub fn check(file: &Path, shape: &[usize], sessions: usize, runs: usize) -> Result<Seen, String> {
    let engine = Engine::builder().threads(1).build().map_err(|e| e.to_string())?;
    let model = Model::load(file).map_err(|e| e.to_string())?;
    let compiled = engine.compile(&model, &CompileSettings::default()).map_err(|e| e.to_string())?;
    let name = model.inputs().first().map(|spec| spec.name.clone()).ok_or("the model has no input")?;
    // Each session walks through the same inputs, each from another one on.
    let inputs: Vec<Value> = (0..5).map(|seed| Numbers::new(seed).floats(shape, -1.0, 1.0).into()).collect();
    let run = |session: &mut armet::Session, input: &Value| -> Result<u64, String> {
        let outputs = session.run(&[(name.as_str(), ValueRef::from(input))]).map_err(|e| e.to_string())?;
        let values: Vec<Value> = (0..outputs.len()).filter_map(|i| Some(outputs.at(i)?.to_value())).collect();
        Ok(sizes::hash(&values))
    };
    let mut first = compiled.session();
    let wanted: Vec<u64> = inputs.iter().map(|input| run(&mut first, input)).collect::<Result<_, _>>()?;
    let (alone, packed) = (resident_bytes()?, compiled.packed_weights());
    let counts: Vec<Result<usize, String>> = std::thread::scope(|scope| {
        let work = |offset: usize| {
            let (compiled, inputs, wanted, run) = (&compiled, &inputs, &wanted, &run);
            scope.spawn(move || {
                let mut session = compiled.session();
                let mut differ = 0;
                for turn in 0..runs {
                    let at = (turn + offset) % inputs.len();
                    differ += usize::from(run(&mut session, &inputs[at])? != wanted[at]);
                }
                Ok(differ)
            })
        };
        let threads: Vec<_> = (0..sessions).map(work).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("a session's thread died".to_owned()))
        };
        threads.into_iter().map(join).collect()
    });
    let mut differ = 0;
    for count in counts {
        differ += count?;
    }
    let file = std::fs::metadata(file).map_err(|e| e.to_string())?.len() as usize;
    Ok(Seen {
        sessions,
        runs,
        differ,
        file,
        arena: first.arena_bytes(),
        resident: (alone, resident_bytes()?),
        packed: (packed, compiled.packed_weights()),
    })
}
