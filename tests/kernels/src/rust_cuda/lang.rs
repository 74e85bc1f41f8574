//! Features of the language: arrays, constants, references, pointers, uninitialized memory, options, bits.

use core::mem::MaybeUninit;
use core::ptr;

use cuda_std::prelude::*;

macro_rules! arrays {
    ($($name:ident: $type:ty;)*) => {$(
        /// An array of equal elements, of which one is changed.
        ///
        /// # Safety
        /// `output` has 4 elements for each thread.
        #[kernel]
        pub unsafe fn $name(x: $type, output: *mut $type) {
            let mut array = [x; 4];
            array[2] = x.wrapping_add(1);
            let i = thread::index_1d() as usize * 4;
            for (k, element) in array.into_iter().enumerate() {
                // SAFETY: as promised by the launch.
                unsafe { *output.add(i + k) = element };
            }
        }
    )*};
}

arrays! {
    init_array_i8: i8;
    init_array_i16: i16;
    init_array_i32: i32;
    init_array_i64: i64;
}

/// Kernels that write a function of each word.
macro_rules! of_each {
    ($($(#[$doc:meta])* fn $name:ident($x:ident) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `output` has as many elements as `input`.
        #[kernel]
        pub unsafe fn $name(input: &[u32], output: *mut u32) {
            fn of($x: u32) -> u32 $body

            let i = thread::index_1d() as usize;
            if i < input.len() {
                // SAFETY: as promised by the launch; no other thread has this index.
                unsafe { *output.add(i) = of(input[i]) };
            }
        }
    )*};
}

struct Pair {
    first: u32,
    second: u32,
}

struct Nothing;

struct OfNothing {
    value: u32,
    nothing: Nothing,
}

fn second(reference: &u32) -> u32 {
    *reference
}

fn of_nothing(_: &Nothing) -> u32 {
    5
}

/// A constant that refers to another one.
const REFERRED: &(u32, &[u32; 3]) = &(7, &[1, 2, 3]);

/// The address, length and capacity of an empty vector.
const LIKE_A_VECTOR: (ptr::NonNull<u32>, usize, usize) = (ptr::NonNull::dangling(), 0, 0);

of_each! {
    /// The bytes in reverse.
    fn bswap(x) {
        x.swap_bytes()
    }
    /// Zeros before the first one.
    fn leading_zeros(x) {
        x.leading_zeros()
    }
    /// Zeros after the last one.
    fn trailing_zeros(x) {
        x.trailing_zeros() + u64::from(x).trailing_zeros() * 100
    }
    /// The bits in reverse.
    fn bit_reverse(x) {
        x.reverse_bits()
    }
    /// The number of ones.
    fn count_ones(x) {
        x.count_ones()
    }
    /// Writes memory that was not initialized.
    fn create_uninitialized_memory(x) {
        let mut memory = MaybeUninit::<[u32; 2]>::uninit();
        memory.write([x, x ^ 1]);
        // SAFETY: just written.
        let [a, b] = unsafe { memory.assume_init() };
        a.wrapping_add(b)
    }
    /// A null pointer, which is not dereferenced.
    fn allocate_null(x) {
        let null: *const u32 = if x == 0 { &REFERRED.0 } else { ptr::null() };
        // SAFETY: null, or the address of a constant.
        unsafe { null.as_ref() }.map_or(1, |number| *number)
    }
    /// The parts of an empty vector.
    fn allocate_vec_like(x) {
        let (start, len, capacity) = LIKE_A_VECTOR;
        x.wrapping_add(u32::from(start.is_aligned())) + (len + capacity) as u32
    }
    /// A reference to a field.
    fn member_ref_arg(x) {
        let pair = Pair { first: x, second: x / 2 };
        second(&pair.second).wrapping_add(pair.first)
    }
    /// A reference to a field without bytes.
    fn zst_member_ref_arg(x) {
        let pair = OfNothing { value: x, nothing: Nothing };
        of_nothing(&pair.nothing) + pair.value % 2
    }
    /// An option's value.
    fn unwrap_or(x) {
        x.checked_sub(10).unwrap_or(1000)
    }
    /// A reference to a constant.
    fn shallow_ref(x) {
        let (number, array) = REFERRED;
        number + array[x as usize % 3]
    }
    /// Both hold.
    fn logical_and(x) {
        u32::from(x.is_multiple_of(3) && x > 10)
    }
    /// One holds.
    fn logical_or(x) {
        u32::from(x.is_multiple_of(3) || x > 10)
    }
    /// The number has two digits.
    fn range_contains(x) {
        u32::from((10..100).contains(&x))
    }
}

/// Arithmetic of 128 bits: a GPU has registers of 64.
///
/// # Safety
/// `b` has as many elements as `a`, none of them 0, and `output` 10 for each.
#[kernel]
pub unsafe fn i128_operations(a: &[u128], b: &[u128], output: *mut u128) {
    let i = thread::index_1d() as usize;
    if i >= a.len() {
        return;
    }
    let (x, y) = (a[i], b[i]);
    let (signed_x, signed_y, bits) = (x as i128, y as i128, y as u32 % 128);
    let words = [
        x.wrapping_add(y),
        x.wrapping_sub(y),
        x.wrapping_mul(y),
        x << bits,
        x >> bits,
        (signed_x >> bits) as u128,
        x / y,
        x % y,
        signed_x.wrapping_div(signed_y) as u128,
        signed_x.wrapping_rem(signed_y) as u128,
    ];
    for (k, word) in words.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(10 * i + k) = word };
    }
}

/// Adds one to each element that has a thread.
///
/// # Safety
/// `x` has as many elements as the grid has threads.
#[kernel]
pub unsafe fn hello_world(x: *mut f32) {
    let i = thread::index_1d() as usize;
    // SAFETY: as promised by the launch; no other thread has this index.
    unsafe { *x.add(i) += 1.0 };
}

/// Adds two numbers.
///
/// # Safety
/// All are addresses of a number; one thread runs.
#[kernel]
pub unsafe fn simple_add(a: *const f32, b: *const f32, c: *mut f32) {
    // SAFETY: as promised by the launch.
    unsafe { *c = *a + *b };
}

/// A kernel with the name `main`.
///
/// # Safety
/// `output` has an element.
#[kernel]
pub unsafe fn main(output: *mut u32) {
    if thread::first() {
        // SAFETY: as promised by the launch; one thread writes.
        unsafe { *output = 99 };
    }
}
