//! Broken models on the whole way: files of ONNX's own cases with some bytes changed, loaded, planned and run. What cannot be
//! right is an error; nothing panics, hangs or takes all memory.

mod wire;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use armet::{CompileSettings, Dim, Engine, Model, RunLimits, ValueRef, ValueSpec};
use armet_graph::{Numbers, Value};
use armet_tensor::{ElementType, Tensor};
use serde::Serialize;

use super::resident_bytes;

/// No mutant of these small models needs longer.
const LONGEST: Duration = Duration::from_secs(30);
/// Nor more memory than this in the whole process.
const MOST_BYTES: usize = 4 << 30;
/// Inputs are not made larger than this: the file asks for them, and whoever gives them pays.
const MOST_ELEMENTS: usize = 1 << 20;

/// What came of the mutants.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Seen {
    /// Mutants made.
    pub mutants: u64,
    /// Refused while loading.
    pub not_loaded: u64,
    /// Refused while planning.
    pub not_compiled: u64,
    /// An error while running.
    pub not_run: u64,
    /// Run to the end.
    pub ran: u64,
    /// What went wrong: which mutant, and what.
    pub faults: Vec<(u64, String)>,
}

enum End {
    NotLoaded,
    NotCompiled,
    NotRun,
    Ran,
}

/// What the watching and the working thread share.
struct Shared {
    seen: Mutex<Seen>,
    /// The mutant at hand and when it began; `None` when all are done.
    current: Mutex<Option<(u64, Instant)>>,
}

/// Makes and runs mutants `first` to `first + count`, of cases in turn. `heard` gets what was seen so far, now and then. Ends
/// early at one that hangs or takes memory; the process should end then too, since the thread that runs it cannot be stopped.
///
/// # Errors
/// When there are no cases, or no engine, or at such a mutant.
pub fn check(cases: &Path, first: u64, count: u64, heard: &mut dyn FnMut(&Seen)) -> Result<Seen, String> {
    let files = Arc::new(models(cases)?);
    let engine =
        Engine::builder().threads(1).memory_limit(MOST_BYTES / 4).build().map_err(|e| e.to_string())?;
    let shared =
        Arc::new(Shared { seen: Mutex::default(), current: Mutex::new(Some((first, Instant::now()))) });
    let work = {
        let (files, shared) = (Arc::clone(&files), Arc::clone(&shared));
        move || {
            for seed in first..first + count {
                *lock(&shared.current) = Some((seed, Instant::now()));
                let (file, bytes) = mutant(&files, seed);
                let end = catch_unwind(AssertUnwindSafe(|| run(&engine, bytes, seed)));
                let mut seen = lock(&shared.seen);
                seen.mutants += 1;
                match end {
                    Ok(End::NotLoaded) => seen.not_loaded += 1,
                    Ok(End::NotCompiled) => seen.not_compiled += 1,
                    Ok(End::NotRun) => seen.not_run += 1,
                    Ok(End::Ran) => seen.ran += 1,
                    Err(panic) => {
                        let what =
                            format!("{}: panic: {}", file.display(), crate::panic_words(panic.as_ref()));
                        seen.faults.push((seed, what));
                    }
                }
            }
            *lock(&shared.current) = None;
        }
    };
    let worker = std::thread::spawn(work);
    loop {
        let Some((seed, began)) = *lock(&shared.current) else { break };
        if worker.is_finished() {
            break;
        }
        let long = began.elapsed() > LONGEST;
        if long || resident_bytes().is_ok_and(|bytes| bytes > MOST_BYTES) {
            let what = if long { "does not end" } else { "takes too much memory" };
            return Err(format!("mutant {seed} of {} {what}", mutant(&files, seed).0.display()));
        }
        heard(&lock(&shared.seen));
        std::thread::sleep(Duration::from_millis(20));
    }
    worker.join().map_err(|_| "the thread that runs mutants broke".to_owned())?;
    Ok(lock(&shared.seen).clone())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a panic leaves is counters.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn models(cases: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(cases).map_err(|e| format!("{}: {e}", cases.display()))?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path().join("model.onnx"))
        .filter(|file| file.is_file())
        .collect();
    files.sort();
    if files.is_empty() { Err(format!("{} holds no cases", cases.display())) } else { Ok(files) }
}

/// The bytes of one mutant.
///
/// # Errors
/// When there are no cases.
pub fn one(cases: &Path, seed: u64) -> Result<Vec<u8>, String> {
    Ok(mutant(&models(cases)?, seed).1)
}

/// The file and its changed bytes: some of them other, a stretch missing, said twice or taken from another file.
fn mutant(files: &[PathBuf], seed: u64) -> (&Path, Vec<u8>) {
    let file = &files[(seed % files.len() as u64) as usize];
    let mut bytes = fs::read(file).unwrap_or_default();
    let mut random = Numbers::new(seed);
    // Most keep the form of the file: what is wrong then is a number, a name or a field.
    if random.int(0, 9) > 0
        && let Some(mut fields) = wire::read(&bytes, 0)
    {
        for _ in 0..=random.int(0, 2) {
            wire::change(&mut fields, &mut random);
        }
        return (file, wire::write(&fields));
    }
    let mut below = |most: usize| random.int(0, most.saturating_sub(1) as i64) as usize;
    match below(8) {
        0 => bytes.truncate(below(bytes.len() + 1)),
        1 => {
            let at = below(bytes.len());
            let end = (at + below(16)).min(bytes.len());
            bytes.drain(at..end);
        }
        2 => {
            let at = below(bytes.len());
            let end = (at + below(32)).min(bytes.len());
            let again = bytes[at..end].to_vec();
            bytes.splice(at..at, again);
        }
        3 => {
            let other = fs::read(&files[below(files.len())]).unwrap_or_default();
            let (at, from) = (below(bytes.len()), below(other.len()));
            let len = below(48).min(other.len() - from).min(bytes.len() - at);
            bytes[at..at + len].copy_from_slice(&other[from..from + len]);
        }
        _ => {
            for _ in 0..=below(3) {
                let (at, kind) = (below(bytes.len()), below(4));
                let Some(byte) = bytes.get_mut(at) else { continue };
                *byte = match kind {
                    0 => *byte ^ (1 << below(8)),
                    1 => [0, 1, 2, 0x7F, 0x80, 0xFF][below(6)],
                    2 => byte.wrapping_add(1),
                    _ => below(256) as u8,
                };
            }
        }
    }
    (file, bytes)
}

fn run(engine: &Engine, bytes: Vec<u8>, seed: u64) -> End {
    let Ok(model) = Model::from_bytes(bytes) else { return End::NotLoaded };
    let Ok(compiled) = engine.compile(&model, &CompileSettings::default()) else { return End::NotCompiled };
    let mut random = Numbers::new(seed);
    let specs = model.inputs();
    let Some(values) = specs.iter().map(|spec| value(spec, &mut random)).collect::<Option<Vec<_>>>() else {
        return End::NotRun;
    };
    let feed: Vec<(&str, ValueRef<'_>)> =
        specs.iter().zip(&values).map(|(spec, value)| (spec.name.as_str(), value.into())).collect();
    let limits = RunLimits { token: None, deadline: Some(Instant::now() + LONGEST / 3) };
    match compiled.session().run_limited(&feed, &limits, &mut armet::NoProbe) {
        Ok(_) => End::Ran,
        Err(_) => End::NotRun,
    }
}

fn value(spec: &ValueSpec, random: &mut Numbers) -> Option<Value> {
    let mut shape = Vec::new();
    for dim in spec.dims().unwrap_or_default() {
        shape.push(match dim {
            Dim::Fixed(length) => *length,
            _ => random.int(0, 4) as usize,
        });
    }
    let count = shape.iter().try_fold(1usize, |all, &length| all.checked_mul(length));
    count.filter(|&count| count <= MOST_ELEMENTS)?;
    let tensor = match spec.element()? {
        ElementType::F32 => random.floats(shape, -2.0, 2.0),
        ElementType::I64 => random.ints::<i64>(shape, -2, 5),
        ElementType::I32 => random.ints::<i32>(shape, -2, 5),
        ElementType::U8 => random.ints::<u8>(shape, 0, 255),
        ElementType::I8 => random.ints::<i8>(shape, -128, 127),
        ElementType::String => return None,
        element => {
            let bytes = element.bytes_for(count?)?;
            let raw: Vec<u8> = (0..bytes).map(|_| random.int(0, 1) as u8).collect();
            Tensor::from_bytes(element, shape, &raw).ok()?
        }
    };
    Some(tensor.into())
}
