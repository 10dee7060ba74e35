//! Counts the memory that a thread allocates: a measure of work that is the same on every machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: usize) {
    // A thread that ends may allocate after its variables are gone.
    let _ = ALLOCATED.try_with(|allocated| allocated.set(allocated.get() + bytes as u64));
}

// SAFETY: every call goes to the system's allocator as it is.
#[expect(unsafe_code, reason = "an allocator is unsafe by its interface")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns how many bytes this thread allocates in a call.
pub(crate) fn allocated<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATED.get();
    let answer = call();
    (answer, ALLOCATED.get() - before)
}
