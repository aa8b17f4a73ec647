//! An allocator that counts: for tests of what a run allocates. One test of a file may use it, since it counts what all
//! threads of the process do.

#![expect(unsafe_code, reason = "only an allocator can count allocations")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many sizes are kept.
const KEPT: usize = 32;

struct Counting;

static WATCHING: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static SIZES: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];
static LIVE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: all is passed on to the system's allocator unchanged; counting touches nothing but atomic numbers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Ordering::Relaxed);
        if WATCHING.load(Ordering::Relaxed) {
            let at = COUNT.fetch_add(1, Ordering::Relaxed);
            if let Some(size) = SIZES.get(at) {
                size.store(layout.size(), Ordering::Relaxed);
            }
        }
        // SAFETY: the caller promises what the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller promises what the system's allocator asks for.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The sizes of what all threads allocate while `work` runs: the first few, and how many there were.
pub(crate) fn allocations<T>(work: impl FnOnce() -> T) -> (T, Vec<usize>, usize) {
    COUNT.store(0, Ordering::SeqCst);
    WATCHING.store(true, Ordering::SeqCst);
    let result = work();
    WATCHING.store(false, Ordering::SeqCst);
    let count = COUNT.load(Ordering::SeqCst);
    let sizes = SIZES.iter().take(count).map(|size| size.load(Ordering::SeqCst)).collect();
    (result, sizes, count)
}

/// Bytes that are allocated and not yet given back.
pub(crate) fn live_bytes() -> usize {
    LIVE.load(Ordering::SeqCst)
}
