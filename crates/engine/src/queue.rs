//! Requests in parallel: a bounded queue in front of one compiled model.
//!
//! Each worker is a thread with a [`Session`] of its own; all share the model's weights. [`Queue::submit`] gives a
//! [`Ticket`], which is a [`Future`], and can be waited on and polled without any runtime too. A request that still waits is
//! dropped as soon as it is cancelled; one that runs ends before its next step. Dropping a ticket cancels its request.
//!
//! Every worker runs on a team of threads of its own, by default as many as the engine's threads divide among the workers.
//! One shared team serves one leader at a time; the runs that find it taken go on alone, so that its helpers would serve
//! whoever comes first, and times would depend on luck.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use armet_graph::Value;
use armet_runtime::{NoProbe, RunError, ValueRef};
use armet_tensor::Tensor;

use crate::{CancelToken, Compiled, RunLimits, Session};

/// How a queue is to be.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// Sessions that run at the same time; by default one for each thread of the engine.
    pub workers: Option<usize>,
    /// Threads that share the work of one request; by default the engine's threads divided among the workers.
    pub threads_per_worker: Option<usize>,
    /// How many requests may wait; those that run do not count.
    pub capacity: usize,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { workers: None, threads_per_worker: None, capacity: 64 }
    }
}

/// Why a queue could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// A number that makes no sense.
    #[error("{what} is {given}; it must be between 1 and {most}")]
    Setting {
        /// Which setting.
        what: &'static str,
        /// What was given.
        given: usize,
        /// The largest that is taken.
        most: usize,
    },
    /// The system gave no thread.
    #[error("cannot start a worker")]
    Thread(#[source] std::io::Error),
}

/// Why a request was not taken. It is given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// As many requests wait as may.
    #[error("the queue is full: {capacity} requests wait")]
    Full {
        /// How many may wait.
        capacity: usize,
        /// What was not taken.
        request: Box<Request>,
    },
    /// The queue was shut down.
    #[error("the queue was shut down")]
    Ended {
        /// What was not taken.
        request: Box<Request>,
    },
}

/// Why a request has no results.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The run failed, was cancelled or took too long.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run panicked: a fault of the engine or of a custom operator. The queue goes on.
    #[error("the run panicked: {0}")]
    Panicked(String),
    /// The result was taken before.
    #[error("the result of this request was taken before")]
    Taken,
}

impl RequestError {
    /// Whether it ended because it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Run(RunError::Cancelled))
    }
}

/// Inputs, and what holds for this run.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The inputs by name, in any order.
    pub inputs: Vec<(String, Value)>,
    /// The moment from which on the results are of no use. A request that waits is ended when a worker turns to it.
    pub deadline: Option<Instant>,
    /// Where random operators start.
    pub seed: u64,
}

impl Request {
    /// A request with one more input.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.inputs.push((name.into(), value.into()));
        self
    }

    /// The same request, of no use after this moment.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }
}

/// The results of a request, by name in the model's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Results(Vec<(String, Value)>);

impl Results {
    /// A result by name.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value)
    }

    /// A result that is a tensor.
    pub fn tensor(&self, name: &str) -> Option<&Tensor> {
        self.get(name)?.tensor()
    }

    /// All results with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

type Outcome = Result<Results, RequestError>;

/// Where a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestState {
    /// No worker has it yet.
    Waiting,
    /// A worker runs it.
    Running,
    /// It has ended, well or not.
    Ended,
}

/// What a queue has done and has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStatistics {
    /// Requests that no worker has yet.
    pub waiting: usize,
    /// Requests that run.
    pub running: usize,
    /// Requests that have given results.
    pub done: u64,
    /// Requests that were cancelled, waiting or running.
    pub cancelled: u64,
    /// Requests that ended with any other error.
    pub failed: u64,
}

/// What becomes of the requests that a queue still has when it is shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All are run first.
    Finish,
    /// Those that wait are dropped, those that run end before their next step.
    Cancel,
}

/// What a ticket and a worker share.
#[derive(Debug)]
struct Slot {
    token: CancelToken,
    state: Mutex<SlotState>,
    ended: Condvar,
}

#[derive(Debug)]
struct SlotState {
    state: RequestState,
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

impl Slot {
    fn finish(&self, outcome: Outcome) {
        let mut state = lock(&self.state);
        state.state = RequestState::Ended;
        state.outcome = Some(outcome);
        let waker = state.waker.take();
        drop(state);
        self.ended.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Debug)]
struct Job {
    request: Request,
    slot: Arc<Slot>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: VecDeque<Job>,
    running: Vec<Arc<Slot>>,
    ended: bool,
    statistics: QueueStatistics,
}

impl Inner {
    fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Ok(_) => self.statistics.done += 1,
            Err(error) if error.is_cancelled() => self.statistics.cancelled += 1,
            Err(_) => self.statistics.failed += 1,
        }
    }
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    work: Condvar,
    capacity: usize,
}

/// Nothing that is done under these locks can leave things half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A bounded queue of requests to one compiled model. Dropping it is [`Queue::shutdown`] with [`Ending::Cancel`].
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    workers: Mutex<Vec<JoinHandle<()>>>,
}

impl Compiled {
    /// A queue of requests to this model.
    ///
    /// # Errors
    /// When a setting makes no sense or the system gives no threads.
    pub fn queue(&self, settings: &QueueSettings) -> Result<Queue, QueueError> {
        let threads = self.engine().threads();
        let workers = settings.workers.unwrap_or(threads);
        let own = settings.threads_per_worker.unwrap_or((threads / workers.max(1)).max(1));
        let all = [
            ("the number of workers", workers, 1024),
            ("the number of threads for each worker", own, 1024),
            ("the capacity", settings.capacity, 1 << 24),
        ];
        if let Some(&(what, given, most)) = all.iter().find(|(_, given, most)| !(1..=*most).contains(given)) {
            return Err(QueueError::Setting { what, given, most });
        }
        let shared =
            Arc::new(Shared { inner: Mutex::default(), work: Condvar::new(), capacity: settings.capacity });
        let queue = Queue { shared, workers: Mutex::default() };
        for index in 0..workers {
            let (shared, compiled) = (Arc::clone(&queue.shared), self.clone());
            let worker = std::thread::Builder::new()
                .name(format!("armet-queue-{index}"))
                .spawn(move || work(&shared, &compiled, own))
                .map_err(QueueError::Thread)?;
            lock(&queue.workers).push(worker);
        }
        Ok(queue)
    }
}

impl Queue {
    /// Hands in a request.
    ///
    /// # Errors
    /// When as many wait as may, or the queue was shut down.
    pub fn submit(&self, request: Request) -> Result<Ticket, SubmitError> {
        let slot = Arc::new(Slot {
            token: CancelToken::new(),
            state: Mutex::new(SlotState { state: RequestState::Waiting, outcome: None, waker: None }),
            ended: Condvar::new(),
        });
        let mut inner = lock(&self.shared.inner);
        if inner.ended {
            return Err(SubmitError::Ended { request: Box::new(request) });
        }
        let capacity = self.shared.capacity;
        if inner.waiting.len() >= capacity {
            return Err(SubmitError::Full { capacity, request: Box::new(request) });
        }
        inner.waiting.push_back(Job { request, slot: Arc::clone(&slot) });
        drop(inner);
        self.shared.work.notify_one();
        Ok(Ticket { slot, shared: Arc::clone(&self.shared), attached: true })
    }

    /// What it has done so far and has to do.
    pub fn statistics(&self) -> QueueStatistics {
        let inner = lock(&self.shared.inner);
        QueueStatistics { waiting: inner.waiting.len(), running: inner.running.len(), ..inner.statistics }
    }

    /// Takes no more requests, ends what is left as `ending` says, and waits for the workers.
    pub fn shutdown(&self, ending: Ending) -> QueueStatistics {
        let mut inner = lock(&self.shared.inner);
        inner.ended = true;
        let mut dropped = VecDeque::new();
        if ending == Ending::Cancel {
            dropped = std::mem::take(&mut inner.waiting);
            inner.statistics.cancelled += dropped.len() as u64;
            for slot in &inner.running {
                slot.token.cancel();
            }
        }
        drop(inner);
        self.shared.work.notify_all();
        for job in dropped {
            job.slot.token.cancel();
            job.slot.finish(Err(RunError::Cancelled.into()));
        }
        let workers = std::mem::take(&mut *lock(&self.workers));
        for worker in workers {
            // What a worker wakes may drop the queue: a thread cannot wait for itself.
            if worker.thread().id() != std::thread::current().id() {
                // A worker catches what its runs throw; there is nothing to be told.
                let _ = worker.join();
            }
        }
        self.statistics()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shutdown(Ending::Cancel);
    }
}

/// The life of a worker.
fn work(shared: &Shared, compiled: &Compiled, threads: usize) {
    let mut session = compiled.session_with_threads(threads);
    while let Some(job) = next_job(shared) {
        let Job { request, slot } = job;
        let outcome = match catch_unwind(AssertUnwindSafe(|| run(&mut session, &request, &slot))) {
            Ok(outcome) => outcome,
            Err(payload) => {
                // What the panic left half done goes with the session.
                session = compiled.session_with_threads(threads);
                Err(RequestError::Panicked(message(payload.as_ref())))
            }
        };
        drop(request);
        let mut inner = lock(&shared.inner);
        inner.running.retain(|other| !Arc::ptr_eq(other, &slot));
        inner.count(&outcome);
        drop(inner);
        // A waker is foreign code; what it throws must not end the worker.
        let _ = catch_unwind(AssertUnwindSafe(|| slot.finish(outcome)));
    }
}

fn next_job(shared: &Shared) -> Option<Job> {
    let mut inner = lock(&shared.inner);
    loop {
        if let Some(job) = inner.waiting.pop_front() {
            inner.running.push(Arc::clone(&job.slot));
            lock(&job.slot.state).state = RequestState::Running;
            return Some(job);
        }
        if inner.ended {
            return None;
        }
        inner = shared.work.wait(inner).unwrap_or_else(PoisonError::into_inner);
    }
}

fn run(session: &mut Session, request: &Request, slot: &Slot) -> Outcome {
    let limits = RunLimits { token: Some(slot.token.clone()), deadline: request.deadline };
    let inputs: Vec<(&str, ValueRef<'_>)> =
        request.inputs.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
    session.set_seed(request.seed);
    let outputs = session.run_limited(&inputs, &limits, &mut NoProbe)?;
    Ok(Results(outputs.iter().map(|(name, value)| (name.to_owned(), value.to_value())).collect()))
}

/// What a panic said.
pub(crate) fn message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

/// A request that was taken: wait on it, poll it, or `.await` it. Dropping it cancels the request.
#[derive(Debug)]
pub struct Ticket {
    slot: Arc<Slot>,
    shared: Arc<Shared>,
    attached: bool,
}

impl Ticket {
    /// Where the request is.
    pub fn state(&self) -> RequestState {
        lock(&self.slot.state).state
    }

    /// Cancels it: at once where it waits, before its next step where it runs. Nothing happens when it has ended.
    pub fn cancel(&self) {
        self.slot.token.cancel();
        let mut inner = lock(&self.shared.inner);
        let found = inner.waiting.iter().position(|job| Arc::ptr_eq(&job.slot, &self.slot));
        let job = found.and_then(|at| inner.waiting.remove(at));
        inner.statistics.cancelled += u64::from(job.is_some());
        drop(inner);
        if let Some(job) = job {
            job.slot.finish(Err(RunError::Cancelled.into()));
        }
    }

    /// Lets the request go on though nobody waits for its results.
    pub fn detach(mut self) {
        self.attached = false;
    }

    /// The results when it has ended; they can be taken once.
    pub fn poll_now(&mut self) -> Option<Outcome> {
        take(&mut lock(&self.slot.state))
    }

    /// Waits for the results.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn wait(self) -> Result<Results, RequestError> {
        let mut state = lock(&self.slot.state);
        loop {
            if let Some(outcome) = take(&mut state) {
                return outcome;
            }
            state = self.slot.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the results no longer than this; `None` when they are not there by then.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Option<Outcome> {
        let state = lock(&self.slot.state);
        let pending = |state: &mut SlotState| state.state != RequestState::Ended;
        let waited = self.slot.ended.wait_timeout_while(state, timeout, pending);
        take(&mut waited.unwrap_or_else(PoisonError::into_inner).0)
    }
}

fn take(state: &mut SlotState) -> Option<Outcome> {
    match state.state {
        RequestState::Ended => Some(state.outcome.take().unwrap_or(Err(RequestError::Taken))),
        RequestState::Waiting | RequestState::Running => None,
    }
}

impl Future for Ticket {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let mut state = lock(&self.slot.state);
        if let Some(outcome) = take(&mut state) {
            return Poll::Ready(outcome);
        }
        let waker = context.waker();
        if !state.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        Poll::Pending
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.attached {
            self.cancel();
        }
    }
}
