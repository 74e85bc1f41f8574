//! Static and dynamic shared memory, by `*array.add(i)`.

use cuda_std::prelude::*;
use cuda_std::shared::dynamic_shared_mem;

/// Writes shared memory, and reads it after a barrier: each element by another thread.
///
/// # Safety
/// `output` has a word for each thread of a block of 256.
#[kernel]
pub unsafe fn static_shared_memory(output: *mut i32) {
    let shared_data = shared_array![i32; 256];
    let tid = thread::thread_idx_x() as usize;
    *shared_data.add(tid) = tid as i32 * 5;
    *shared_data.add(tid) -= 1;
    thread::sync_threads();
    let value = *shared_data.add(255 - tid);
    // SAFETY: as promised by the launch.
    unsafe { *output.add(tid) = value };
}

/// Arrays of several types, including arrays.
///
/// # Safety
/// `output` has a word for each thread of a block of 32.
#[kernel]
pub unsafe fn shared_memory_of_types(output: *mut f32) {
    let words = shared_array![u32; 32];
    let floats = shared_array![f32; 32];
    let bytes = shared_array![u8; 32];
    let vectors = shared_array![[f32; 3]; 32];
    let t = thread::thread_idx_x() as usize;
    *words.add(t) = t as u32;
    *floats.add(t) = t as f32 * 0.5;
    *bytes.add(t) = t as u8;
    *vectors.add(t) = [t as f32, 100.0, 0.0];
    vectors.add(t)[2] = 0.25;
    thread::sync_threads();
    let other = 31 - t;
    let [x, y, z] = *vectors.add(other);
    let sum = *words.add(other) as f32 + *floats.add(other) + f32::from(*bytes.add(other)) + x + y + z;
    // SAFETY: as promised by the launch.
    unsafe { *output.add(t) = sum };
}

/// The example of the guide: reverses `n` numbers, at most 64, in place.
///
/// # Safety
/// `d` has `n` elements, and the block `n` threads.
#[kernel]
pub unsafe fn reverse_array(d: *mut i32, n: usize) {
    let s = shared_array![i32; 64];
    let t = thread::thread_idx_x() as usize;
    let tr = n - t - 1;
    // SAFETY: as promised by the launch.
    *s.add(t) = unsafe { *d.add(t) };
    thread::sync_threads();
    // SAFETY: as above.
    unsafe { *d.add(t) = *s.add(tr) };
}

/// Reverses `n` numbers, at most 1024, in place, by dynamic shared memory.
///
/// # Safety
/// `d` has `n` elements, the block `n` threads, and the launch 8 bytes of dynamic shared memory for each thread.
#[kernel]
pub unsafe fn reverse_array_dynamic(d: *mut f64, n: usize) {
    let s = dynamic_shared_mem::<f64>();
    let t = thread::thread_idx_x() as usize;
    // SAFETY: as promised by the launch.
    *s.add(t) = unsafe { *d.add(t) };
    thread::sync_threads();
    // SAFETY: as above.
    unsafe { *d.add(t) = *s.add(n - t - 1) };
}

/// A place that is kept across a barrier, so that its store would come too late.
///
/// # Safety
/// `output` has a word for each thread of a block of 32.
#[kernel]
pub unsafe fn a_place_kept_too_long(output: *mut u32) {
    let s = shared_array![u32; 32];
    let t = thread::thread_idx_x() as usize;
    let mut place = s.add(t);
    *place = 1;
    thread::sync_threads();
    // SAFETY: as promised by the launch.
    unsafe { *output.add(t) = *s.add(31 - t) };
}

/// Threads read elements of others in shared memory without a barrier.
///
/// # Safety
/// `output` has a word for each thread of a block of 64.
#[kernel]
pub unsafe fn a_race_by_places(output: *mut u32) {
    let s = shared_array![u32; 64];
    let t = thread::thread_idx_x() as usize;
    *s.add(t) = t as u32;
    // SAFETY: as promised by the launch.
    unsafe { *output.add(t) = *s.add(63 - t) };
}
