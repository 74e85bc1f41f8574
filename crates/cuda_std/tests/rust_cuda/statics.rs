//! `#[address_space(shared)]` on statics.

use core::mem::MaybeUninit;

use cuda_std::address_space;
use cuda_std::prelude::*;
use simt::Fault;

const SIDE: usize = 16;

/// Transposes a matrix of [`SIDE`] by [`SIDE`] elements by an array of arrays, which the kernel declares.
///
/// # Safety
/// `matrix` has an element for each thread of a block of 16 by 16.
#[kernel]
pub unsafe fn transposed(matrix: *mut f32) {
    #[address_space(shared)]
    static mut TILE: [[MaybeUninit<f32>; SIDE + 1]; SIDE] = [[const { MaybeUninit::uninit() }; SIDE + 1]; SIDE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    // SAFETY: inside `matrix`; no other thread has this element.
    let element = unsafe { &mut *matrix.add(ty * SIDE + tx) };
    TILE[ty][tx].write(*element);
    thread::sync_threads();
    *element = TILE[tx][ty].assume_init_read();
}

#[test]
fn a_transpose_by_an_array_of_arrays() {
    let mut matrix: Vec<f32> = (0..SIDE * SIDE).map(|i| i as f32).collect();
    let expected: Vec<f32> = (0..SIDE * SIDE).map(|i| (i % SIDE * SIDE + i / SIDE) as f32).collect();
    let slots = [crate::pointer(&mut matrix)];
    // SAFETY: an element for each of the threads.
    unsafe { crate::launch(transposed::handle().with_block((16, 16)), 1, &slots) }.unwrap();
    assert_eq!(matrix, expected);
}

/// A static that several kernels use, of a type that takes three accesses.
#[address_space(shared)]
static mut POINTS: [MaybeUninit<[f32; 3]>; 64] = [MaybeUninit::uninit(); 64];

/// # Safety
/// `points` has an element for each thread of a block of up to 64.
#[kernel]
pub unsafe fn reversed(points: *mut [f32; 3]) {
    let (i, last) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize - 1);
    // SAFETY: as promised by the launch.
    let point = unsafe { &mut *points.add(thread::index_1d() as usize) };
    POINTS[i].write(*point);
    thread::sync_threads();
    *point = POINTS[last - i].assume_init();
}

/// # Safety
/// As for [`reversed`].
#[kernel]
pub unsafe fn reversed_without_barrier(points: *mut [f32; 3]) {
    let (i, last) = (thread::thread_idx_x() as usize, thread::block_dim_x() as usize - 1);
    // SAFETY: as promised by the launch.
    let point = unsafe { &mut *points.add(i) };
    POINTS[i].write(*point);
    *point = POINTS[last - i].assume_init();
}

#[kernel]
pub fn reads_what_none_has_written() {
    let i = thread::thread_idx_x() as usize;
    if i != 5 {
        POINTS[i].write([1.0; 3]);
    }
    thread::sync_threads();
    let _ = POINTS[i].assume_init();
}

#[kernel]
pub fn writes_past_the_end() {
    POINTS[thread::thread_idx_x() as usize + 60].write([1.0; 3]);
}

fn points() -> Vec<[f32; 3]> {
    (0..128).map(|i| [i as f32, 0.5, -(i as f32)]).collect()
}

#[test]
fn each_block_has_its_own_array() {
    let mut found = points();
    // SAFETY: an element for each of the threads.
    unsafe { crate::launch(reversed::handle().with_block(64), 2, &[crate::pointer(&mut found)]) }.unwrap();
    let mut expected = points();
    expected.chunks_mut(64).for_each(<[_]>::reverse);
    assert_eq!(found, expected);
}

#[test]
fn a_race_is_found() {
    let mut found = points();
    let slots = [crate::pointer(&mut found)];
    // SAFETY: as above.
    let fault = unsafe { crate::launch(reversed_without_barrier::handle().with_block(64), 1, &slots) }.unwrap_err();
    assert!(matches!(*fault, Fault::Mistakes(_)), "{fault}");
    let message = fault.to_string();
    let line = include_str!("statics.rs").lines().position(|line| line.starts_with("static mut POINTS")).unwrap() + 1;
    assert!(
        message.contains(&format!("the shared array of crates/cuda_std/tests/rust_cuda/statics.rs:{line}")),
        "{message}"
    );
}

#[test]
fn an_unwritten_element_is_found() {
    // SAFETY: the kernel takes nothing.
    let fault = unsafe { crate::launch(reads_what_none_has_written::handle().with_block(64), 1, &[]) }.unwrap_err();
    assert!(matches!(*fault, Fault::Mistakes(_)), "{fault}");
}

#[test]
fn an_index_past_the_end_is_found() {
    // SAFETY: the kernel takes nothing.
    let fault = unsafe { crate::launch(writes_past_the_end::handle().with_block(8), 1, &[]) }.unwrap_err();
    assert!(fault.to_string().contains("index 64 of a static in shared memory of length 64"), "{fault}");
}
