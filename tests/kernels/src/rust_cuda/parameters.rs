//! Kernels with one parameter by value, of any type; `bool`s and other types whose bits are checked; names that are
//! keywords.

use cuda_std::bytemuck::{CheckedBitPattern, NoUninit, Pod, Zeroable};
use cuda_std::num_complex::Complex;
use cuda_std::prelude::*;
use cuda_std::{Plain, bf16, f16};

/// A number of words to write, and where: 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[repr(C)]
pub struct Job {
    /// The address of the words.
    pub words: u64,
    /// The number of words.
    pub count: u32,
    /// The first word.
    pub first: u32,
}

/// Another name of a struct.
pub type OtherName = Job;

/// A struct that is plain if its field is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Generic<T> {
    /// The address of a `T`.
    pub to: u64,
    /// The value to store there, twice.
    pub values: [T; 2],
}

// SAFETY: zeros are valid for all fields.
unsafe impl<T: Zeroable> Zeroable for Generic<T> {}
// SAFETY: all fields are plain; there is no padding for the types of 4 and 8 bytes that the kernels use.
unsafe impl<T: Pod> Pod for Generic<T> {}

/// Writes as the struct says, which is the kernel's only parameter.
///
/// # Safety
/// The job's words are in the device's memory.
#[kernel]
pub unsafe fn only_a_struct(job: Job) {
    let i = thread::index_1d();
    if i < job.count {
        // SAFETY: as promised by the launch.
        unsafe { *(job.words as usize as *mut u32).add(i as usize) = job.first + i };
    }
}

/// The same, by another name of the struct, which is a path.
///
/// # Safety
/// The job's words are in the device's memory.
#[kernel]
#[allow(unused_qualifications, reason = "a path of several segments")]
pub unsafe fn only_an_alias(
    /// What to write.
    job: crate::rust_cuda::parameters::OtherName,
) {
    let i = thread::index_1d();
    if i < job.count {
        // SAFETY: as promised by the launch.
        unsafe { *(job.words as usize as *mut u32).add(i as usize) = job.first ^ i };
    }
}

/// Stores two values, of several types.
///
/// # Safety
/// The values' address is in the device's memory.
#[kernel(instances = [f32, u64])]
pub unsafe fn only_a_generic_struct<T: Element>(value: Generic<T>) {
    if thread::index_1d() == 0 {
        // SAFETY: as promised by the launch.
        unsafe { *(value.to as usize as *mut [T; 2]) = value.values };
    }
}

macro_rules! asserts {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $expected:expr;)*) => {$(
        $(#[$doc])*
        #[kernel]
        pub fn $name(x: $type) {
            assert_eq!(x, $expected);
        }
    )*};
}

asserts! {
    /// Fails unless its only parameter is `true`.
    only_a_bool: bool = true;
    /// Fails unless its only parameter is a given integer of 128 bits.
    only_a_u128: u128 = u128::MAX / 3;
    /// Fails unless its only parameter is -2.
    only_an_i128: i128 = -2;
    /// Fails unless its only parameter is 1.5.
    only_an_f16: f16 = f16::from_f32_const(1.5);
    /// Fails unless its only parameter is -0.5.
    only_a_bf16: bf16 = bf16::from_f32_const(-0.5);
    /// Fails unless its only parameter is a given complex number.
    only_a_complex_number: Complex<f64> = Complex::new(1.0, -2.0);
    /// Fails unless its only parameter is a given vector.
    only_a_vector: glam::Vec4 = glam::Vec4::new(1.0, 2.0, 3.0, 4.0);
    /// Fails unless its only parameter is a given array.
    only_an_array: [u8; 5] = [5, 4, 3, 2, 1];
    /// Fails unless its only parameter is a letter.
    only_a_char: char = 'ß';
}

/// Negates `bool`s if it is told to, and counts those that are true.
#[kernel]
pub fn bools(count: GlobalMut<u32>, negate: bool, flags: Global<bool>, out: GlobalMut<bool>) {
    let i = thread::index_1d() as usize;
    if i < flags.len() {
        out.store(i, flags.load(i) != negate);
        // 1 for each byte that is not 0.
        count.store(i, u32::from(flags.load(i)) + u32::from(flags.load_or(i + 1, true)));
    }
}

/// Writes a byte for each thread to memory of `bool`s, most of which are no `bool`.
#[kernel]
pub fn bytes_as_bools(flags: GlobalMut<bool>) {
    let i = thread::index_1d() as usize;
    if i < flags.len() {
        flags.cast::<u8>().store(i, i as u8);
    }
}

/// Negates `bool`s in Rust-CUDA's way.
///
/// # Safety
/// `out` has as many elements as `flags`, whose bytes are 0 or 1.
#[kernel]
pub unsafe fn slices_of_bools(flags: &[bool], negate: bool, out: *mut bool) {
    let i = thread::index_1d() as usize;
    if i < flags.len() {
        // SAFETY: as promised by the launch.
        unsafe { *out.add(i) = flags[i] != negate };
    }
}

/// A type of which only three bit patterns are values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
#[repr(u16)]
pub enum Color {
    Red = 1,
    Green = 2,
    Blue = 0x300,
}

// SAFETY: it has no padding.
unsafe impl NoUninit for Color {}
// SAFETY: a value has these bits.
unsafe impl CheckedBitPattern for Color {
    type Bits = u16;
    fn is_valid_bit_pattern(bits: &u16) -> bool {
        matches!(*bits, 1 | 2 | 0x300)
    }
}

/// Writes the color that follows each one; reading anything else ends the kernel.
#[kernel]
pub fn enums(colors: Global<Color>, letters: Global<char>, next: GlobalMut<Color>, next_letters: GlobalMut<char>) {
    let i = thread::index_1d() as usize;
    if i < colors.len() {
        let following = match colors.load(i) {
            Color::Red => Color::Green,
            Color::Green => Color::Blue,
            Color::Blue => Color::Red,
        };
        next.store(i, following);
        next_letters.store(i, char::from_u32(u32::from(letters.load(i)) + 1).unwrap_or('!'));
    }
}

/// A kernel whose name and parameters are keywords.
#[kernel]
pub fn r#loop(r#type: Global<u32>, r#for: u32, r#in: GlobalMut<u32>) {
    let i = thread::index_1d() as usize;
    if i < r#type.len() {
        r#in.store(i, r#type.load(i) + r#for);
    }
}

/// The arguments of `match`.
#[arguments]
pub struct Keywords {
    /// The sources.
    pub r#as: Global<u32>,
    /// The targets.
    pub r#mut: GlobalMut<u32>,
    /// A factor.
    pub r#if: u32,
}

/// A generic kernel whose name is a keyword, and whose argument struct is a name.
#[kernel(instances = [u32, i32])]
pub fn r#match<T: Element>(keywords: Keywords) {
    let i = thread::index_1d() as usize;
    if i < keywords.r#as.len() {
        keywords.r#mut.store(i, keywords.r#as.load(i) * keywords.r#if + size_of::<T>() as u32);
    }
}

/// The value of `while`, which is the kernel's only parameter.
#[kernel]
pub fn r#while(r#struct: OtherName) {
    assert_eq!(r#struct.first, 7);
}

/// Rust-CUDA's kernels have this attribute.
///
/// # Safety
/// `out` has as many elements as threads.
#[kernel]
#[unsafe(no_mangle)]
pub unsafe fn not_mangled(x: u32, out: *mut u32) {
    // SAFETY: as promised by the launch.
    unsafe { *out.add(thread::index_1d() as usize) = x };
}

/// The same, with the attributes in the other order, and as in editions before 2024.
///
/// # Safety
/// `out` has as many elements as threads.
#[no_mangle]
#[kernel]
pub unsafe fn not_mangled_either(x: u32, out: *mut u32) {
    // SAFETY: as promised by the launch.
    unsafe { *out.add(thread::index_1d() as usize) = x + 1 };
}
