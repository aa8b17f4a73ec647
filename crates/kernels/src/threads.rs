//! A fork-join team of threads: the only place of this crate that starts or wakes threads.
//!
//! [`Team::run`] calls a function once for every index of a range, on the caller and on the team's workers, and
//! returns when all calls have returned. Indices are claimed one by one from an atomic counter, so uneven tasks even
//! out. Nothing is allocated per run. Workers spin for some tens of microseconds after a run, then sleep; the caller
//! waits only for workers that have joined the run, so a worker that the system does not schedule delays nobody.
//!
//! A run inside a task, and a run while another thread has the team, is a plain loop on the calling thread.

#![expect(unsafe_code, reason = "a borrowed closure crosses to threads that outlive the borrow's scope")]

use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a worker of [`Team::new`] looks for the next run, and a caller for the last worker, before it sleeps.
const SPIN: Duration = Duration::from_micros(40);

/// The first argument is the thread's index in the team, the second the task.
type Task<'a> = &'a (dyn Fn(usize, usize) + Sync);

thread_local! {
    /// Set while this thread runs a task of any team.
    static INSIDE_TASK: Cell<bool> = const { Cell::new(false) };
}

/// A fork-join team: the calling thread and `threads() - 1` workers, which end when the team is dropped.
#[derive(Debug)]
pub struct Team {
    workers: Vec<JoinHandle<()>>,
    shared: Option<Arc<Shared>>,
}

impl Team {
    /// A team of the calling thread alone: every run is a plain loop.
    pub const fn single() -> Team {
        Team { workers: Vec::new(), shared: None }
    }

    /// A team of `threads` threads, the caller included.
    ///
    /// Where the system refuses a thread the team is smaller; [`Team::threads`] tells.
    pub fn new(threads: usize) -> Team {
        Team::with_spin(threads, SPIN)
    }

    /// Like [`Team::new`] with a chosen time to look for work before sleeping: zero saves power, more saves the time
    /// of waking up.
    pub fn with_spin(threads: usize, spin: Duration) -> Team {
        if threads <= 1 {
            return Team::single();
        }
        let shared = Arc::new(Shared { spin, ..Shared::default() });
        let mut workers = Vec::with_capacity(threads - 1);
        for index in 1..threads {
            let for_worker = Arc::clone(&shared);
            let worker = std::thread::Builder::new().name(format!("armet-{index}"));
            match worker.spawn(move || for_worker.work(index)) {
                Ok(handle) => workers.push(handle),
                Err(_) => break,
            }
        }
        if workers.is_empty() { Team::single() } else { Team { workers, shared: Some(shared) } }
    }

    /// How many threads take part in a run, the caller included.
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Call `task` once with every index below `tasks`, in no stated order, and return when all calls returned.
    ///
    /// # Panics
    /// When a task panics, with its payload, after the running tasks have ended; tasks not yet begun are left out.
    pub fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        self.run_with_thread(tasks, &|_, index| task(index));
    }

    /// Like [`Team::run`] with the thread's index before the task's: below [`Team::threads`], and no two tasks of one
    /// run have the same thread index at the same time. It serves to pick a thread's own part of a scratch buffer.
    ///
    /// # Panics
    /// As [`Team::run`].
    pub fn run_with_thread(&self, tasks: usize, task: &(dyn Fn(usize, usize) + Sync)) {
        match &self.shared {
            Some(shared) if tasks > 1 && !INSIDE_TASK.get() => {
                if let Some(turn) = shared.take_turn() {
                    shared.lead(tasks, task, self.workers.len());
                    drop(turn);
                    return;
                }
            }
            _ => {}
        }
        for index in 0..tasks {
            task(0, index);
        }
    }

    /// Cut `data` into pieces of `chunk` elements (the last may be shorter) and call `task` once with each piece and
    /// its index.
    ///
    /// # Panics
    /// When `chunk` is zero, and as [`Team::run`].
    pub fn parallel_chunks_mut<T: Send>(
        &self,
        data: &mut [T],
        chunk: usize,
        task: &(dyn Fn(usize, &mut [T]) + Sync),
    ) {
        assert!(chunk > 0, "chunks have at least one element");
        let length = data.len();
        let whole = DisjointMut::new(data);
        self.run(length.div_ceil(chunk), &|index| {
            let start = index * chunk;
            // SAFETY: each index is run once and its range meets no other index's range.
            let piece = unsafe { whole.slice_mut(start, chunk.min(length - start)) };
            task(index, piece);
        });
    }

    /// Cut `0..length` into ranges of at least `grain` elements, few per thread, with starts that are multiples of
    /// `multiple`, and call `task` once with each range as (start, end).
    ///
    /// # Panics
    /// As [`Team::run`].
    pub fn parallel_ranges(
        &self,
        length: usize,
        grain: usize,
        multiple: usize,
        task: &(dyn Fn(usize, usize) + Sync),
    ) {
        if length == 0 {
            return;
        }
        let multiple = multiple.max(1);
        let wanted = if self.threads() == 1 { 1 } else { self.threads() * 4 };
        let step = length.div_ceil(wanted).max(grain).max(1).div_ceil(multiple) * multiple;
        self.run(length.div_ceil(step), &|index| task(index * step, ((index + 1) * step).min(length)));
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.state.fetch_or(STOP, Ordering::SeqCst);
            let guard = shared.lock_bell();
            shared.bell.notify_all();
            drop(guard);
        }
        for worker in self.workers.drain(..) {
            // A worker catches the panics of tasks and has none of its own.
            let _ended = worker.join();
        }
    }
}

/// A slice that several tasks write at once, each its own part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisjointMut<'a, T> {
    start: *mut T,
    length: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: it only hands out parts of a `&mut [T]`, which may move to and be used from other threads when `T: Send`.
unsafe impl<T: Send> Send for DisjointMut<'_, T> {}
// SAFETY: as above; who asks for a part promises that parts in use at one time do not meet.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

impl<'a, T> DisjointMut<'a, T> {
    pub(crate) fn new(data: &'a mut [T]) -> Self {
        DisjointMut { start: data.as_mut_ptr(), length: data.len(), lifetime: PhantomData }
    }

    /// The address of the element at `start`, or of the end.
    pub(crate) fn at(&self, start: usize) -> *mut T {
        assert!(start <= self.length, "address outside the slice");
        self.start.wrapping_add(start)
    }

    /// The elements `start..start + length`.
    ///
    /// # Safety
    /// No other part in use at the same time may overlap this one.
    pub(crate) unsafe fn slice_mut(&self, start: usize, length: usize) -> &'a mut [T] {
        assert!(start <= self.length && length <= self.length - start, "part outside the slice");
        // SAFETY: inside the slice, which is borrowed for `'a`; disjointness is the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), length) }
    }
}

/// The team will end: workers leave.
const STOP: u64 = 1;
/// A run is open: workers may join it.
const OPEN: u64 = 2;
/// One worker that has joined the run and has not left it.
const JOINED: u64 = 4;
const JOINED_MASK: u64 = 0xffff * JOINED;
/// One run; the rest of the word counts them.
const RUN: u64 = JOINED_MASK + JOINED;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug, Default)]
struct Shared {
    /// STOP, OPEN, the number of joined workers, the number of the run.
    state: Line<AtomicU64>,
    /// The next task to claim.
    next: Line<AtomicUsize>,
    /// The number of tasks of the open run.
    tasks: AtomicUsize,
    /// The address of a `Task` on the stack of the caller of the open run.
    task: AtomicPtr<()>,
    /// Set while a caller has the team.
    taken: AtomicBool,
    /// How many threads sleep on `bell`, or are about to.
    sleepers: AtomicUsize,
    /// Set while the caller sleeps on `done`, or is about to.
    caller_sleeps: AtomicBool,
    lock: Mutex<()>,
    bell: Condvar,
    done: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    spin: Duration,
}

impl std::ops::Deref for Line<AtomicU64> {
    type Target = AtomicU64;
    fn deref(&self) -> &AtomicU64 {
        &self.0
    }
}

/// The exclusive right to lead a run, given back on drop, also when the run panics.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Shared {
    fn take_turn(&self) -> Option<Turn<'_>> {
        let free = self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        free.is_ok().then(|| Turn(&self.taken))
    }

    fn lock_bell(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Open a run, take part in it, close it and wait for the workers that joined.
    fn lead(&self, tasks: usize, task: Task<'_>, workers: usize) {
        self.next.0.store(0, Ordering::Relaxed);
        self.tasks.store(tasks, Ordering::Relaxed);
        self.task.store(ptr::from_ref(&task).cast_mut().cast(), Ordering::Relaxed);
        // No run is open and no worker is joined: only this thread changes the word now, but for STOP, which needs
        // `&mut Team`.
        let opened = (self.state.load(Ordering::Relaxed) & !JOINED_MASK) + RUN + OPEN;
        self.state.store(opened, Ordering::SeqCst);
        let sleepers = self.sleepers.load(Ordering::SeqCst);
        if sleepers > 0 {
            let guard = self.lock_bell();
            if tasks > workers {
                self.bell.notify_all();
            } else {
                for _ in 1..tasks {
                    self.bell.notify_one();
                }
            }
            drop(guard);
        }
        self.take_part(0, task, tasks);
        self.state.fetch_and(!OPEN, Ordering::SeqCst);
        self.wait_for_joined();
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(payload) = panic {
            // The turn ends while this unwinds.
            resume_unwind(payload);
        }
    }

    fn wait_for_joined(&self) {
        let joined = || self.state.load(Ordering::SeqCst) & JOINED_MASK != 0;
        if spin_while(self.spin, &joined) {
            return;
        }
        let mut guard = self.lock_bell();
        self.caller_sleeps.store(true, Ordering::SeqCst);
        while joined() {
            guard = self.done.wait(guard).unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_sleeps.store(false, Ordering::SeqCst);
    }

    /// Claim and run tasks until there are none. A panic ends the claiming of all and is kept for the caller.
    fn take_part(&self, thread: usize, task: Task<'_>, tasks: usize) {
        INSIDE_TASK.set(true);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            loop {
                let index = self.next.0.fetch_add(1, Ordering::Relaxed);
                if index >= tasks {
                    break;
                }
                task(thread, index);
            }
        }));
        INSIDE_TASK.set(false);
        if let Err(payload) = outcome {
            self.next.0.store(tasks, Ordering::Relaxed);
            self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(payload);
        }
    }

    /// The life of a worker.
    fn work(&self, thread: usize) {
        let mut last_run = 0;
        while let Some(run) = self.next_run(last_run) {
            last_run = run;
            let tasks = self.tasks.load(Ordering::Relaxed);
            let address = self.task.load(Ordering::Relaxed).cast_const().cast::<Task<'_>>();
            // SAFETY: this worker has joined an open run, whose caller stored the address of a `Task` before opening
            // it and does not return before this worker has left; the join read the state that the caller released.
            let task = unsafe { *address };
            self.take_part(thread, task, tasks);
            let before = self.state.fetch_sub(JOINED, Ordering::SeqCst);
            let last = before & JOINED_MASK == JOINED;
            if last && self.caller_sleeps.load(Ordering::SeqCst) {
                let guard = self.lock_bell();
                self.done.notify_all();
                drop(guard);
            }
        }
    }

    /// Join the next open run after `last_run` and return its number; `None` when the team ends.
    fn next_run(&self, last_run: u64) -> Option<u64> {
        let is_news = |state: u64| state & STOP != 0 || (state & OPEN != 0 && state / RUN != last_run);
        loop {
            let nothing_new = || !is_news(self.state.load(Ordering::Acquire));
            if !spin_while(self.spin, &nothing_new) {
                let mut guard = self.lock_bell();
                self.sleepers.fetch_add(1, Ordering::SeqCst);
                while !is_news(self.state.load(Ordering::SeqCst)) {
                    guard = self.bell.wait(guard).unwrap_or_else(PoisonError::into_inner);
                }
                self.sleepers.fetch_sub(1, Ordering::SeqCst);
            }
            let state = self.state.load(Ordering::Acquire);
            if state & STOP != 0 {
                return None;
            }
            let is_open = state & OPEN != 0 && state / RUN != last_run;
            if is_open
                && self
                    .state
                    .compare_exchange(state, state + JOINED, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(state / RUN);
            }
        }
    }
}

/// Look at `condition` again and again for about `limit`; true as soon as it is false, false when time is up.
fn spin_while(limit: Duration, condition: &dyn Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..16 {
            if !condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > limit {
            return !condition();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Team;
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    fn counters(count: usize) -> Vec<AtomicUsize> {
        (0..count).map(|_| AtomicUsize::new(0)).collect()
    }

    fn all_are(counters: &[AtomicUsize], expected: usize) -> bool {
        counters.iter().all(|counter| counter.load(Ordering::SeqCst) == expected)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_index_runs_exactly_once(threads in 1usize..9, tasks in 0usize..300, runs in 1usize..8) {
            let team = Team::new(threads);
            prop_assert!(team.threads() <= threads);
            let seen = counters(tasks);
            for _ in 0..runs {
                team.run(tasks, &|index| { seen[index].fetch_add(1, Ordering::SeqCst); });
            }
            prop_assert!(all_are(&seen, runs));
        }

        #[test]
        fn chunks_cover_the_slice_once(threads in 1usize..5, length in 0usize..200, chunk in 1usize..40) {
            let team = Team::new(threads);
            let mut data = vec![0usize; length];
            team.parallel_chunks_mut(&mut data, chunk, &|index, piece| {
                for (offset, element) in piece.iter_mut().enumerate() {
                    *element += index * chunk + offset + 1;
                }
            });
            prop_assert!(data.iter().enumerate().all(|(index, &element)| element == index + 1));
        }

        #[test]
        fn ranges_cover_the_length_once(
            threads in 1usize..5, length in 0usize..500, grain in 0usize..60, multiple in 0usize..9,
        ) {
            let team = Team::new(threads);
            let seen = counters(length);
            team.parallel_ranges(length, grain, multiple, &|start, end| {
                assert!(start % multiple.max(1) == 0 && start < end);
                assert!(end - start >= grain || end == length);
                for counter in &seen[start..end] {
                    counter.fetch_add(1, Ordering::SeqCst);
                }
            });
            prop_assert!(all_are(&seen, 1));
        }
    }

    #[test]
    fn sees_what_the_caller_wrote_and_shows_what_tasks_wrote() {
        let team = Team::new(4);
        let mut data = vec![1u64; 64];
        for round in 0..5000_u64 {
            team.parallel_chunks_mut(&mut data, 3, &|_, piece| {
                for element in piece {
                    *element += round;
                }
            });
            let expected = 1 + round * (round + 1) / 2;
            assert!(data.iter().all(|&element| element == expected), "round {round}");
        }
    }

    #[test]
    fn works_after_workers_have_gone_to_sleep() {
        let team = Team::with_spin(3, Duration::ZERO);
        let seen = counters(10);
        for _ in 0..2000 {
            std::thread::yield_now();
            team.run(10, &|index| {
                seen[index].fetch_add(1, Ordering::SeqCst);
            });
        }
        assert!(all_are(&seen, 2000));
    }

    #[test]
    fn more_than_one_thread_takes_part() {
        let team = Team::new(2);
        let meeting = AtomicUsize::new(0);
        team.run(2, &|_| {
            meeting.fetch_add(1, Ordering::SeqCst);
            while meeting.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        });
        assert_eq!(meeting.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn thread_indices_are_exclusive() {
        let team = Team::new(5);
        let busy = counters(team.threads());
        for _ in 0..200 {
            team.run_with_thread(40, &|thread, _| {
                assert_eq!(busy[thread].fetch_add(1, Ordering::SeqCst), 0);
                std::hint::black_box((0..50).sum::<usize>());
                assert_eq!(busy[thread].fetch_sub(1, Ordering::SeqCst), 1);
            });
        }
    }

    #[test]
    fn a_run_inside_a_task_is_a_loop_on_that_thread() {
        let team = Team::new(3);
        let seen = counters(7 * 11);
        team.run(7, &|outer| {
            let here = std::thread::current().id();
            team.run(11, &|inner| {
                assert_eq!(std::thread::current().id(), here);
                seen[outer * 11 + inner].fetch_add(1, Ordering::SeqCst);
            });
        });
        assert!(all_are(&seen, 1));
    }

    #[test]
    fn several_threads_may_call_at_once() {
        let team = Team::new(3);
        let seen: Vec<_> = (0..4).map(|_| counters(50)).collect();
        std::thread::scope(|scope| {
            for own in &seen {
                scope.spawn(|| {
                    for _ in 0..300 {
                        team.run(50, &|index| {
                            own[index].fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
            }
        });
        assert!(seen.iter().all(|own| all_are(own, 300)));
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_team_lives_on() {
        for threads in [1, 2, 4] {
            let team = Team::new(threads);
            for bad in [0, 13, 29] {
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    team.run(30, &|index| assert!(index != bad, "task {index} gave up"));
                }));
                let payload = outcome.expect_err("the panic is passed on");
                let message = payload.downcast_ref::<String>().expect("a formatted message");
                assert_eq!(message, &format!("task {bad} gave up"));
                let seen = counters(30);
                team.run(30, &|index| {
                    seen[index].fetch_add(1, Ordering::SeqCst);
                });
                assert!(all_are(&seen, 1), "the team works after a panic");
            }
        }
    }

    #[test]
    fn a_panic_on_a_worker_reaches_the_caller() {
        let team = Team::new(2);
        let caller = std::thread::current().id();
        let worker_ran = AtomicUsize::new(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            team.run(2, &|_| {
                if std::thread::current().id() == caller {
                    while worker_ran.load(Ordering::SeqCst) == 0 {
                        std::thread::yield_now();
                    }
                } else {
                    worker_ran.store(1, Ordering::SeqCst);
                    panic!("worker gave up");
                }
            });
        }));
        assert!(outcome.is_err());
    }

    #[test]
    fn dropping_ends_the_workers() {
        for _ in 0..50 {
            let team = Team::new(4);
            team.run(4, &|_| {});
            drop(team);
        }
        drop(Team::new(4));
    }
}
