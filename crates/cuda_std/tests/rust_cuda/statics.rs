//! `#[address_space(shared)]` on statics.

use core::mem::MaybeUninit;

use cuda_std::address_space;
use cuda_std::prelude::*;
use simt::Fault;

const SIDE: usize = 16;

/// `c = alpha * a * b + beta * c`, for `m` by `k` matrix `a` and `k` by `n` matrix `b`, in row-major order.
///
/// # Safety
/// `c` has `m * n` elements, and a block has 16 by 16 threads.
#[kernel]
pub unsafe fn gemm_of_tiles(a: &[f32], b: &[f32], c: *mut f32, m: usize, n: usize, k: usize, alpha: f32, beta: f32) {
    const AREA: usize = SIDE * SIDE;
    #[address_space(shared)]
    static mut TILE_A: [MaybeUninit<f32>; AREA] = [MaybeUninit::uninit(); AREA];
    #[address_space(shared)]
    static mut TILE_B: [[MaybeUninit<f32>; SIDE + 1]; SIDE] = [[const { MaybeUninit::uninit() }; SIDE + 1]; SIDE];

    let (tx, ty) = (thread::thread_idx_x() as usize, thread::thread_idx_y() as usize);
    let (row, column) = (thread::block_idx_x() as usize * SIDE + ty, thread::block_idx_y() as usize * SIDE + tx);
    let mut sum = 0.0;
    for first in (0..k).step_by(SIDE) {
        let (ka, kb) = (first + tx, first + ty);
        TILE_A[ty * SIDE + tx].write(if row < m && ka < k { a[row * k + ka] } else { 0.0 });
        TILE_B[ty][tx].write(if column < n && kb < k { b[kb * n + column] } else { 0.0 });
        thread::sync_threads();
        for i in 0..SIDE {
            sum += TILE_A[ty * SIDE + i].assume_init() * TILE_B[i][tx].assume_init_read();
        }
        thread::sync_threads();
    }
    if row < m && column < n {
        // SAFETY: inside `c`; no other thread has this element.
        let element = unsafe { &mut *c.add(row * n + column) };
        *element = alpha * sum + beta * *element;
    }
}

#[test]
fn a_matrix_product_by_tiles() {
    let (m, n, k) = (37, 29, 50);
    let number = |i: usize| (i * 7 % 11) as f32 - 5.0;
    let mut a: Vec<f32> = (0..m * k).map(number).collect();
    let mut b: Vec<f32> = (0..k * n).map(|i| number(i + 3)).collect();
    let mut c: Vec<f32> = (0..m * n).map(|i| number(i + 5)).collect();
    // Small integers: every order gives these sums.
    let product = |i: usize| (0..k).map(|x| a[i / n * k + x] * b[x * n + i % n]).sum::<f32>();
    let expected: Vec<f32> = (0..m * n).map(|i| 2.0 * product(i) + 3.0 * c[i]).collect();
    let slots = [
        crate::pointer(&mut a),
        a.len() as u64,
        crate::pointer(&mut b),
        b.len() as u64,
        crate::pointer(&mut c),
        m as u64,
        n as u64,
        k as u64,
        u64::from(2_f32.to_bits()),
        u64::from(3_f32.to_bits()),
    ];
    // SAFETY: `c` has `m * n` elements.
    unsafe { crate::launch(gemm_of_tiles::handle().with_block((16, 16)), (3, 2), &slots) }.unwrap();
    assert_eq!(c, expected);
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
