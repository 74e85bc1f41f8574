//! Operations of the language for which the compiler calls functions by name: comparisons and copies of bytes, searches
//! for a byte, and conversions between floats and integers of 128 bits.

use core::ptr;

use cuda_std::Plain;
use cuda_std::prelude::*;

unsafe extern "C" {
    fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8;
    fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8;
    fn memcmp(a: *const u8, b: *const u8, bytes: usize) -> i32;
    fn bcmp(a: *const u8, b: *const u8, bytes: usize) -> i32;
}

/// The bytes of each thread in the output of [`copies`].
pub const BYTES: usize = 192;

/// What each thread of [`copies`] copies and sets: numbers of bytes, and offsets in its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Plain)]
#[allow(missing_docs, reason = "the fields say it")]
#[repr(C)]
pub struct Copy {
    pub len: u32,
    pub from: u32,
    pub to: u32,
    pub moved_from: u32,
    pub moved_to: u32,
    pub set: u32,
    pub set_to: u32,
}

/// Copies, moves and sets bytes of global and of local memory, at any alignment.
///
/// # Safety
/// `input` has [`BYTES`] bytes. Each thread has that number of bytes in `global` and in `from_local`, and its copies
/// are inside them.
#[kernel]
pub unsafe fn copies(input: *const u8, copies: &[Copy], global: *mut u8, from_local: *mut u8) {
    let i = thread::index_1d() as usize;
    if i >= copies.len() {
        return;
    }
    let copy = copies[i];
    let mut local = [0x11_u8; BYTES];
    // SAFETY: as promised by the launch.
    unsafe {
        let own = global.add(i * BYTES);
        for bytes in [own, local.as_mut_ptr()] {
            let at = |offset: u32| bytes.add(offset as usize);
            let end = memcpy(at(copy.to), input.add(copy.from as usize), copy.len as usize);
            let moved = memmove(at(copy.moved_to), at(copy.moved_from), copy.len as usize);
            let set = memset(at(copy.set_to), -0x55, copy.set as usize);
            // They return their first argument.
            if end != at(copy.to) || moved != at(copy.moved_to) || set != at(copy.set_to) {
                *bytes = 0xEE;
            }
        }
        ptr::copy_nonoverlapping(local.as_ptr(), from_local.add(i * BYTES), BYTES);
    }
}

/// A struct of more than 32 bytes whose equality is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Plain)]
#[allow(missing_docs, reason = "the fields say it")]
#[repr(C)]
pub struct Name {
    pub letters: [u8; 40],
    pub id: u32,
}

/// The number of words that [`comparisons`] writes for each pair.
pub const COMPARISONS: usize = 12;

/// Compares two slices of `lens[i]` bytes in every way.
///
/// # Safety
/// `a` and `b` have 64 bytes after each of `starts`; the output has [`COMPARISONS`] words for each start.
#[kernel]
pub unsafe fn comparisons(a: &[u8], b: &[u8], starts: &[[u32; 3]], output: *mut i32) {
    let i = thread::index_1d() as usize;
    if i >= starts.len() {
        return;
    }
    let [of_a, of_b, len] = starts[i].map(|word| word as usize);
    let (x, y) = (&a[of_a..of_a + len], &b[of_b..of_b + len]);
    let mut local = [0_u8; 64];
    local[..len].copy_from_slice(x);
    let array = |from: &[u8], at: usize| -> [u8; 32] { core::array::from_fn(|k| from[at + k]) };
    let name = |from: &[u8], at: usize| Name { letters: core::array::from_fn(|k| from[at + k]), id: 7 };
    // SAFETY: as promised by the launch.
    let words = unsafe {
        [
            memcmp(x.as_ptr(), y.as_ptr(), len).signum(),
            i32::from(bcmp(x.as_ptr(), y.as_ptr(), len) != 0),
            i32::from(x == y),
            x.cmp(y) as i32,
            i32::from(x.starts_with(&y[..len / 2])),
            i32::from(x.ends_with(&y[len / 2..])),
            i32::from(array(a, of_a) == array(b, of_b)),
            i32::from(name(a, of_a) == name(b, of_b)),
            i32::from(local[..len] == *y),
            memcmp(y.as_ptr(), local.as_ptr(), len).signum(),
            i32::from(x.contains(&y.first().copied().unwrap_or(1))),
            i32::from(a[of_a..].contains(&0xFF)),
        ]
    };
    for (k, word) in words.into_iter().enumerate() {
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i * COMPARISONS + k) = word };
    }
}

/// Finds each of several words by a `match`.
///
/// # Safety
/// `output` has as many elements as `words`.
#[kernel]
pub unsafe fn words_by_match(words: &[[u8; 48]], output: *mut u32) {
    let i = thread::index_1d() as usize;
    if i < words.len() {
        let letters = words[i].iter().position(|&letter| letter == 0).unwrap_or(48);
        let found = match core::str::from_utf8(&words[i][..letters]) {
            Ok("a word") => 1,
            Ok("another word") => 2,
            Ok("the longest of the words, of 39 letters") => 3,
            Ok("the longest of the words, of 40 letters.") => 4,
            Ok("ein Wörtchen") => 5,
            Ok(_) => 6,
            Err(_) => 7,
        };
        // SAFETY: as promised by the launch.
        unsafe { *output.add(i) = found };
    }
}

/// Converts integers of 128 bits to floats, as signed and unsigned numbers.
#[kernel]
pub fn integers_to_floats(integers: Global<u128>, singles: GlobalMut<[f32; 2]>, doubles: GlobalMut<[f64; 2]>) {
    let i = thread::index_1d() as usize;
    if i < integers.len() {
        let x = integers.load(i);
        singles.store(i, [x as f32, x as i128 as f32]);
        doubles.store(i, [x as f64, x as i128 as f64]);
    }
}

/// Converts floats to integers of 128 bits, signed and unsigned.
#[kernel]
pub fn floats_to_integers(
    singles: Global<f32>,
    doubles: Global<f64>,
    from_singles: GlobalMut<[u128; 2]>,
    from_doubles: GlobalMut<[u128; 2]>,
) {
    let i = thread::index_1d() as usize;
    if i < singles.len() {
        let (x, y) = (singles.load(i), doubles.load(i));
        from_singles.store(i, [x as u128, x as i128 as u128]);
        from_doubles.store(i, [y as u128, y as i128 as u128]);
    }
}
