//! Processes that run cases: each is told folder after folder on its input and answers with one line. One that ends or
//! takes too long fails the case it was on and is replaced.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Case, Ended, Suite, Verdict, run};

/// A case that takes longer will not end.
const DEADLINE: Duration = Duration::from_secs(120);

/// Reads folders from standard input, runs the case in each, and answers; returns where the input ends.
///
/// # Errors
/// When a folder's suite has no index, or the answer cannot be written.
pub fn serve(engine: &armet::Engine) -> Result<(), String> {
    let mut suites: BTreeMap<std::path::PathBuf, Suite> = BTreeMap::new();
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let folder = Path::new(&line);
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
            return Err(format!("{line} is no case"));
        };
        if !suites.contains_key(parent) {
            suites.insert(parent.to_owned(), Suite::open("", parent)?);
        }
        let case = suites[parent].index.cases.get(&*name.to_string_lossy());
        let case = case.ok_or_else(|| format!("{line} is not in the index"))?;
        let verdict = guarded(engine, folder, case);
        let answer = serde_json::to_string(&verdict).map_err(|e| e.to_string())?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{answer}").and_then(|()| out.flush()).map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn guarded(engine: &armet::Engine, folder: &Path, case: &Case) -> Verdict {
    let run = std::panic::AssertUnwindSafe(|| run(engine, folder, case));
    std::panic::catch_unwind(run).unwrap_or_else(|panic| Verdict::Failed {
        why: format!("panic: {}", crate::panic_words(panic.as_ref())),
    })
}

struct Worker {
    child: Child,
    ask: ChildStdin,
    answers: Receiver<String>,
}

impl Worker {
    fn start(command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| e.to_string())?;
        let (Some(ask), Some(out)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without pipes".to_owned());
        };
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, ask, answers })
    }

    /// The verdict; `Err` when the process can take no more.
    fn run(&mut self, folder: &Path) -> Result<Verdict, String> {
        writeln!(self.ask, "{}", folder.display()).map_err(|e| format!("the process is gone: {e}"))?;
        match self.answers.recv_timeout(DEADLINE) {
            Ok(line) => serde_json::from_str(&line).map_err(|e| format!("no verdict in {line:?}: {e}")),
            Err(RecvTimeoutError::Timeout) => Err(format!("no end within {} s", DEADLINE.as_secs())),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_err(|e| e.to_string())?;
                Err(format!("it ended the process: {status}"))
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the cases of a suite that `wanted` names in `count` processes that `command` makes, and tells each to `heard`.
///
/// # Errors
/// When no process can be started.
pub fn all(
    suite: &Suite,
    wanted: &(dyn Fn(&str) -> bool + Sync),
    count: usize,
    command: &(dyn Fn() -> Command + Sync),
    heard: &(dyn Fn(&Ended) + Sync),
) -> Result<Vec<Ended>, String> {
    let names: Vec<&String> = suite.index.cases.keys().filter(|name| wanted(name)).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let ended = Mutex::new(Vec::new());
    let work = || -> Result<(), String> {
        let mut worker: Option<Worker> = None;
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(case) = names.get(at) else { return Ok(()) };
            let mut ready = match worker.take() {
                Some(worker) => worker,
                None => Worker::start(&mut command())?,
            };
            let verdict = match ready.run(&suite.folder.join(case)) {
                Ok(verdict) => {
                    worker = Some(ready);
                    verdict
                }
                Err(why) => Verdict::Failed { why },
            };
            let one = Ended { case: (*case).clone(), verdict };
            heard(&one);
            ended.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count.max(1)).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err("a worker's thread died".to_owned())))
    })?;
    let mut ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    ended.sort_by(|a, b| a.case.cmp(&b.case));
    Ok(ended)
}
