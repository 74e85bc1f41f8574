//! Transposes of any element size, shape, pitch and alignment, compared with the CPU.

use cuda_std::bytemuck::{Pod, bytes_of, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use warpfold::num_complex::{Complex32, Complex64};
use warpfold::{ArrayView, ArrayViewMut, Error, Gpu, Layout, Plain, ScaledElement, Scaling};

/// A transpose to test.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Rows of the input.
    pub rows: usize,
    /// Columns of the input.
    pub columns: usize,
    /// The number of matrices.
    pub batch: usize,
    /// The padding of rows in elements, of input and output.
    pub pads: [usize; 2],
    /// The number of elements before the first, in input and output.
    pub offsets: [usize; 2],
    /// The seed of the elements.
    pub seed: u64,
}

impl Case {
    /// The layouts of the matrices' transposes: in the input, and in the output, whose guard zone is in front of it.
    ///
    /// # Errors
    /// None.
    pub fn layouts(&self) -> Result<[Layout; 2], Error> {
        let Self { rows, columns, batch, pads: [pad_in, pad_out], offsets: [before_in, before_out], .. } = *self;
        let side = |rows: usize, columns: usize, pad: usize, before: usize| {
            let pitch = columns + pad;
            Layout::strided(&[batch, rows, columns], &[rows * pitch, pitch, 1].map(|stride| stride as isize), before)
        };
        Ok([
            side(rows, columns, pad_in, before_in)?.permute_axes(&[0, 2, 1])?,
            side(columns, rows, pad_out, BEFORE + before_out)?,
        ])
    }
}

/// Transposes and compares the whole output, including memory that must not be written.
pub type Check = fn(&Gpu, &Case) -> Result<(), String>;

/// One check for each element size, by a type of that size.
pub static CHECKS: [(&str, Check); 8] = [
    ("u8", check::<u8>),
    ("u16", check::<u16>),
    ("four bytes", check::<[u8; 4]>),
    ("i128", check::<i128>),
    ("f32", check::<f32>),
    ("f64", check::<f64>),
    ("complex f32", check::<[f32; 2]>),
    ("complex f64", check::<[f64; 2]>),
];

/// Elements of any bits.
trait Bits: Plain + Pod {}

impl<T: Plain + Pod> Bits for T {}

/// The first element whose bits differ.
fn first_difference<T: Bits>(found: &[T], expected: &[T]) -> Option<usize> {
    if cast_slice::<T, u8>(found) == cast_slice::<T, u8>(expected) {
        return None;
    }
    let differs = |(found, expected): (&T, &T)| bytes_of(found) != bytes_of(expected);
    Some(found.iter().zip(expected).position(differs).unwrap_or(found.len().min(expected.len())))
}

/// The number of elements after the output that must not be written.
const GUARD: usize = 40;

/// The number of elements before it: enough to keep the alignment.
const BEFORE: usize = 256;

fn check<T: Bits>(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let Case { rows, columns, batch, pads: [pad_in, pad_out], offsets: [before_in, before_out], .. } = *case;
    let (pitch_in, pitch_out) = (columns + pad_in, rows + pad_out);
    let elements: Vec<T> = noise(case.seed, before_in + batch * rows * pitch_in);
    let poison: Vec<T> = noise(!case.seed, BEFORE + before_out + batch * columns * pitch_out + GUARD);
    let mut expected = poison.clone();
    each_place(case, |from, to| expected[BEFORE + to] = elements[from]);
    let run = || {
        let (input, mut output) = (gpu.upload(&elements)?, gpu.upload(&poison)?);
        let [from, to] = case.layouts()?;
        gpu.copy_array(ArrayView::new(input.view(), &from)?, ArrayViewMut::new(output.view_mut(), &to)?)?;
        gpu.download(&output)
    };
    let found = run().map_err(|error: Error| format!("{case:?}: {error}"))?;
    match first_difference(&found, &expected) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{case:?} of {} bytes: element {at} is {:x?}, should be {:x?}",
            size_of::<T>(),
            bytes_of(&found[at]),
            bytes_of(&expected[at])
        )),
    }
}

/// Sides around every boundary of a tile and of a micro-tile of elements of up to 16 bytes.
pub const SIDES: [usize; 19] = [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257];

/// One check for each type that is scaled in an epilogue, compared with the CPU.
pub static SCALED_CHECKS: [(&str, Check); 6] = [
    ("f16", check_scaled::<f16>),
    ("bf16", check_scaled::<bf16>),
    ("f32", check_scaled::<f32>),
    ("f64", check_scaled::<f64>),
    ("complex f32", check_scaled::<Complex32>),
    ("complex f64", check_scaled::<Complex64>),
];

/// A number that can be scaled.
trait Number: ScaledElement + Plain {
    fn of(source: &mut Noise) -> Self;
    fn times(self, factor: Self) -> Self;
    fn conjugated(self) -> Self;
    /// The number's bits, equal for all NaN.
    fn bits(self) -> [u64; 2];
}

/// Arbitrary bits half of the time, otherwise a number of moderate size.
fn real(source: &mut Noise) -> f64 {
    let bits = source.bits();
    if source.coin() { f64::from_bits(bits) } else { bits as i64 as f64 * (9.0 / 2.0_f64.powi(63)) }
}

macro_rules! reals {
    ($($type:ident: |$x:ident, $factor:ident| $product:expr;)*) => {$(
        impl Number for $type {
            fn of(source: &mut Noise) -> Self {
                if source.coin() { Self::from_bits(source.bits() as _) } else { ScaledFrom::from_f64(real(source)) }
            }
            fn times(self, $factor: Self) -> Self {
                let $x = self;
                $product
            }
            fn conjugated(self) -> Self {
                self
            }
            fn bits(self) -> [u64; 2] {
                [if self.is_nan() { Self::NAN } else { self }.to_bits().into(), 0]
            }
        }
    )*};
}

trait ScaledFrom {
    fn from_f64(x: f64) -> Self;
}

macro_rules! from_f64 {
    ($($type:ident: |$x:ident| $from:expr;)*) => {$(
        impl ScaledFrom for $type {
            fn from_f64($x: f64) -> Self {
                $from
            }
        }
    )*};
}

from_f64! {
    f16: |x| Self::from_f64(x);
    bf16: |x| Self::from_f64(x);
    f32: |x| x as Self;
    f64: |x| x;
}

reals! {
    f16: |x, factor| Self::from_f32(x.to_f32() * factor.to_f32());
    bf16: |x, factor| Self::from_f32(x.to_f32() * factor.to_f32());
    f32: |x, factor| x * factor;
    f64: |x, factor| x * factor;
}

macro_rules! complexes {
    ($($type:ident of $part:ident;)*) => {$(
        impl Number for $type {
            fn of(source: &mut Noise) -> Self {
                Self::new(<$part as Number>::of(source), <$part as Number>::of(source))
            }
            fn times(self, factor: Self) -> Self {
                let (re, im) = (factor.re * self.re - factor.im * self.im, factor.re * self.im + factor.im * self.re);
                Self::new(re, im)
            }
            fn conjugated(self) -> Self {
                Self::new(self.re, -self.im)
            }
            fn bits(self) -> [u64; 2] {
                [Number::bits(self.re)[0], Number::bits(self.im)[0]]
            }
        }
    )*};
}

complexes! {
    Complex32 of f32;
    Complex64 of f64;
}

/// Checks scaling, conjugation and both.
fn check_scaled<T: Number + Default>(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let Case { rows, columns, batch, pads: [pad_in, pad_out], offsets: [before_in, before_out], .. } = *case;
    let mut source = Noise::new(case.seed);
    let (pitch_in, pitch_out) = (columns + pad_in, rows + pad_out);
    let numbers = |source: &mut Noise, len: usize| (0..len).map(|_| T::of(source)).collect::<Vec<T>>();
    let elements = numbers(&mut source, before_in + batch * rows * pitch_in);
    let poison = numbers(&mut source, BEFORE + before_out + batch * columns * pitch_out + GUARD);
    let factor = T::of(&mut source);
    type Of<T> = fn(T, T) -> T;
    let kinds: [(Scaling<T>, Of<T>); 3] = [
        (Scaling::by(factor), |x, factor| x.times(factor)),
        (Scaling::conjugate(), |x, _| x.conjugated()),
        (Scaling::by(factor).and_conjugate(), |x, factor| x.conjugated().times(factor)),
    ];
    for (i, (scaling, of)) in kinds.into_iter().enumerate() {
        let mut expected = poison.clone();
        each_place(case, |from, to| expected[BEFORE + to] = of(elements[from], factor));
        let run = || {
            let (input, mut output) = (gpu.upload(&elements)?, gpu.upload(&poison)?);
            let [from, to] = case.layouts()?;
            let (from, to) = (ArrayView::new(input.view(), &from)?, ArrayViewMut::new(output.view_mut(), &to)?);
            gpu.copy_scaled(scaling, from, to)?;
            gpu.download(&output)
        };
        let found = run().map_err(|error: Error| format!("{case:?}: {error}"))?;
        if let Some(at) = (0..found.len()).find(|&at| found[at].bits() != expected[at].bits()) {
            let (found, expected) = (found[at].bits(), expected[at].bits());
            let what = ["a product", "a conjugate", "a product of a conjugate"][i];
            return Err(format!("{case:?}: {what}, element {at} is {found:x?}, should be {expected:x?}"));
        }
    }
    Ok(())
}

/// Calls `work` with the position of each element in the input and in the output.
fn each_place(case: &Case, mut work: impl FnMut(usize, usize)) {
    let Case { rows, columns, batch, pads: [pad_in, pad_out], offsets: [before_in, before_out], .. } = *case;
    let (pitch_in, pitch_out) = (columns + pad_in, rows + pad_out);
    for matrix in 0..batch {
        for row in 0..rows {
            let (mut from, mut to) =
                (before_in + (matrix * rows + row) * pitch_in, before_out + matrix * columns * pitch_out + row);
            for _ in 0..columns {
                work(from, to);
                (from, to) = (from + 1, to + pitch_out);
            }
        }
    }
}

/// Pseudorandom bits from a seed, as hashes of their indices: a fraction of the cost of a good generator, for hundreds
/// of millions of elements.
struct Noise {
    state: u64,
}

impl Noise {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;

    fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(Self::ODD) ^ 0x5851_F42D_4C95_7F2D }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(Self::ODD);
        let hash = (self.state ^ self.state >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash ^ hash >> 31
    }

    fn coin(&mut self) -> bool {
        self.bits() >> 40 & 1 != 0
    }
}

/// Elements of pseudorandom bits.
fn noise<T: Bits>(seed: u64, len: usize) -> Vec<T> {
    let mut noise = Noise::new(seed);
    let mut elements = vec![T::zeroed(); len];
    let (words, rest) = cast_slice_mut::<T, u8>(&mut elements).as_chunks_mut::<8>();
    words.iter_mut().for_each(|word| *word = noise.bits().to_be_bytes());
    // Of a part of a word, the high bytes, which are the most random.
    let last = noise.bits().to_be_bytes();
    rest.copy_from_slice(&last[..rest.len()]);
    elements
}

/// Checks square matrices in place, including memory that must not be written. The case's columns and the output's
/// fields are ignored.
pub static IN_PLACE_CHECKS: [(&str, Check); 5] = [
    ("u8", check_in_place::<u8>),
    ("u16", check_in_place::<u16>),
    ("f32", check_in_place::<f32>),
    ("f64", check_in_place::<f64>),
    ("complex f64", check_in_place::<[f64; 2]>),
];

fn check_in_place<T: Bits>(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let Case { rows: side, batch, pads: [pad, _], offsets: [before, _], .. } = *case;
    let before = BEFORE + before;
    let (pitch, len) = (side + pad, batch * side * (side + pad));
    let elements: Vec<T> = noise(case.seed, before + len + GUARD);
    let mut expected = elements.clone();
    for matrix in 0..batch {
        let first = before + matrix * side * pitch;
        for row in 0..side {
            for column in 0..side {
                expected[first + column * pitch + row] = elements[first + row * pitch + column];
            }
        }
    }
    let run = || {
        let mut buffer = gpu.upload(&elements)?;
        let squares = Layout::strided(&[batch, side, side], &[side * pitch, pitch, 1].map(|x| x as isize), before)?;
        gpu.transpose_in_place(ArrayViewMut::new(buffer.view_mut(), &squares)?)?;
        gpu.download(&buffer)
    };
    let found = run().map_err(|error: Error| format!("{case:?}: {error}"))?;
    match first_difference(&found, &expected) {
        None => Ok(()),
        Some(at) => Err(format!("{case:?} in place, of {} bytes: element {at} is wrong", size_of::<T>())),
    }
}

/// The orders of three axes.
pub const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

/// Permutes an array of this shape in each order, from and to views with these offsets. Compares the whole output,
/// including memory that must not be written.
pub type PermuteCheck = fn(&Gpu, [usize; 3], [usize; 2], u64) -> Result<(), String>;

/// One check for each element size.
pub static PERMUTE_CHECKS: [(&str, PermuteCheck); 5] = [
    ("u8", check_permuted::<u8>),
    ("u16", check_permuted::<u16>),
    ("f32", check_permuted::<f32>),
    ("f64", check_permuted::<f64>),
    ("complex f64", check_permuted::<[f64; 2]>),
];

fn check_permuted<T: Bits>(gpu: &Gpu, shape: [usize; 3], offsets: [usize; 2], seed: u64) -> Result<(), String> {
    let [before_in, before_out] = [offsets[0], BEFORE + offsets[1]];
    let len = shape.iter().product::<usize>();
    let (elements, poison): (Vec<T>, Vec<T>) = (noise(seed, before_in + len), noise(!seed, before_out + len + GUARD));
    for axes in ORDERS {
        let mut expected = poison.clone();
        let permuted = axes.map(|axis| shape[axis]);
        for at in 0..len {
            let index = [at / (shape[1] * shape[2]), at / shape[2] % shape[1], at % shape[2]];
            let [i, j, k] = axes.map(|axis| index[axis]);
            expected[before_out + (i * permuted[1] + j) * permuted[2] + k] = elements[before_in + at];
        }
        let run = || {
            let (input, mut output) = (gpu.upload(&elements)?, gpu.upload(&poison)?);
            let from = ArrayView::new(input.view().slice(before_in, len)?, &Layout::contiguous(&shape)?)?;
            let to = Layout::contiguous(&permuted)?;
            let to = ArrayViewMut::new(output.view_mut().slice(before_out, len)?, &to)?;
            gpu.copy_array(from.permute_axes(&axes.map(|axis| axis as isize))?, to)?;
            gpu.download(&output)
        };
        let what = || format!("{shape:?} by {axes:?}, of {} bytes, from and to {offsets:?}", size_of::<T>());
        let found = run().map_err(|error: Error| format!("{}: {error}", what()))?;
        if let Some(at) = first_difference(&found, &expected) {
            return Err(format!("{}: element {at} is wrong", what()));
        }
    }
    Ok(())
}

/// The checks of elements of one size: each call that moves elements.
pub struct SizeChecks {
    /// Bytes of an element.
    pub size: usize,
    /// Transposes with pitches, batches and offsets.
    pub transpose: Check,
    /// Square matrices in place.
    pub in_place: Check,
    /// All orders of three axes.
    pub permute: PermuteCheck,
}

impl SizeChecks {
    const fn of<T: Bits>() -> Self {
        Self {
            size: size_of::<T>(),
            transpose: check::<T>,
            in_place: check_in_place::<T>,
            permute: check_permuted::<T>,
        }
    }

    /// Runs each of them on matrices of `rows` x `columns` elements and arrays of three axes, without gaps at the start
    /// of the memory, and with pitches, batches and offsets.
    ///
    /// # Errors
    /// If a result is wrong, or on an error of the library.
    pub fn run(&self, gpu: &Gpu, rows: usize, columns: usize, seed: u64) -> Result<(), String> {
        for (batch, pads, offsets) in
            [(1, [0; 2], [0; 2]), (1, [0; 2], [3, 1]), (3, [0; 2], [0; 2]), (2, [3, 1], [1, 2]), (1, [0, 5], [0; 2])]
        {
            let case = Case { rows, columns, batch, pads, offsets, seed };
            (self.transpose)(gpu, &case)?;
            (self.in_place)(gpu, &Case { pads: [pads[0]; 2], ..case })?;
        }
        for (shape, offsets) in [([rows, columns, 3], [0; 2]), ([2, rows, columns], [1, 2]), ([rows, 5, 2], [0, 1])] {
            (self.permute)(gpu, shape, offsets, seed)?;
        }
        Ok(())
    }
}

macro_rules! sizes {
    ($($size:literal)*) => {
        [$(SizeChecks::of::<[u8; $size]>()),*]
    };
}

/// The checks of every size that the library moves.
pub static EVERY_SIZE: [SizeChecks; 64] = sizes! {
    1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
};

/// A matrix that is transposed by tiles for elements of 2 bytes or more, 16-byte aligned.
pub const ALIGNED: Case = Case { rows: 1040, columns: 2064, batch: 1, pads: [0; 2], offsets: [0; 2], seed: 0 };

/// Small matrices, but enough of them that their blocks have the maximum number of threads, for every element size.
pub const MANY: Case = Case { rows: 112, columns: 32, batch: 110, pads: [0; 2], offsets: [0; 2], seed: 0 };

/// Matrices with enough tiles, for every element size, that the large tiles are used, and with unaligned output rows.
pub const LARGE: [Case; 7] = [
    Case { rows: 1, columns: 300_000, batch: 2, pads: [2, 1], offsets: [10, 3], seed: 0 },
    Case { rows: 300_000, columns: 3, batch: 2, pads: [2, 1], offsets: [10, 3], seed: 0 },
    Case { rows: 2047, columns: 4099, batch: 1, pads: [0; 2], offsets: [0; 2], seed: 0 },
    Case { rows: 1001, columns: 1003, batch: 9, pads: [3, 5], offsets: [1, 7], seed: 0 },
    // One column more than sector-aligned tiles have.
    Case { rows: 1001, columns: 961, batch: 9, pads: [2, 5], offsets: [5, 7], seed: 0 },
    Case { rows: 12_007, columns: 33, batch: 5, pads: [0, 1], offsets: [3, 1], seed: 0 },
    Case { rows: 33, columns: 12_007, batch: 5, pads: [1, 0], offsets: [3, 1], seed: 0 },
];

/// Matrices so tall that they are transposed in panels of rows: with aligned rows, for elements of up to 8 bytes (for
/// 16 bytes they are whole pairs of lines), and with unaligned rows, for every element size.
pub const TALL: [Case; 2] = [
    Case { rows: 65_552, columns: 272, batch: 2, pads: [0; 2], offsets: [0; 2], seed: 0 },
    Case { rows: 65_541, columns: 259, batch: 1, pads: [2, 1], offsets: [3, 5], seed: 0 },
];
