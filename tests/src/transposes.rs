//! Transposes of any element size, shape, pitch and alignment, beside what the CPU makes of them.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use warpfold::{Error, Gpu, Plain, Transposition};

/// What is transposed.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Rows of the input.
    pub rows: usize,
    /// Columns of the input.
    pub columns: usize,
    /// Matrices.
    pub batch: usize,
    /// Elements between the end of a row and the next, of input and output.
    pub pads: [usize; 2],
    /// Elements before the first, of input and output.
    pub offsets: [usize; 2],
    /// Which elements.
    pub seed: u64,
}

/// Transposes and compares, what must not be written too.
pub type Check = fn(&Gpu, &Case) -> Result<(), String>;

/// One for each size, by a type of it.
pub const CHECKS: [(&str, Check); 6] = [
    ("u8", check::<u8>),
    ("u16", check::<u16>),
    ("f32", check::<f32>),
    ("f64", check::<f64>),
    ("complex f32", check::<[f32; 2]>),
    ("complex f64", check::<[f64; 2]>),
];

/// Any bits.
trait Bits: Plain {
    fn of(low: u64, high: u64) -> Self;
    fn bits(self) -> [u64; 2];
}

macro_rules! bits {
    ($($type:ty, $of:expr, $bits:expr;)*) => {$(
        impl Bits for $type {
            fn of(low: u64, high: u64) -> Self {
                ($of)(low, high)
            }
            fn bits(self) -> [u64; 2] {
                ($bits)(self)
            }
        }
    )*};
}

bits! {
    u8, |low, _| low as Self, |x: Self| [x.into(), 0];
    u16, |low, _| low as Self, |x: Self| [x.into(), 0];
    f32, |low, _| Self::from_bits(low as u32), |x: Self| [x.to_bits().into(), 0];
    f64, |low, _| Self::from_bits(low), |x: Self| [x.to_bits(), 0];
    [f32; 2], |low: u64, high: u64| [low, high].map(|word| f32::from_bits(word as u32)),
        |x: Self| x.map(|part| part.to_bits().into());
    [f64; 2], |low, high| [low, high].map(f64::from_bits), |x: Self| x.map(f64::to_bits);
}

/// Elements behind the output that nothing may touch.
const GUARD: usize = 40;

fn check<T: Bits>(gpu: &Gpu, case: &Case) -> Result<(), String> {
    let Case { rows, columns, batch, pads: [pad_in, pad_out], offsets: [before_in, before_out], .. } = *case;
    let mut source = SmallRng::seed_from_u64(case.seed);
    let (pitch_in, pitch_out) = (columns + pad_in, rows + pad_out);
    let elements: Vec<T> =
        (0..before_in + batch * rows * pitch_in).map(|_| T::of(source.random(), source.random())).collect();
    let poison: Vec<T> = (0..before_out + batch * columns * pitch_out + GUARD)
        .map(|_| T::of(source.random(), source.random()))
        .collect();
    let mut expected = poison.clone();
    for matrix in 0..batch {
        for row in 0..rows {
            for column in 0..columns {
                let from = before_in + (matrix * rows + row) * pitch_in + column;
                let to = before_out + (matrix * columns + column) * pitch_out + row;
                expected[to] = elements[from];
            }
        }
    }
    let run = || {
        let (input, mut output) = (gpu.upload(&elements)?, gpu.upload(&poison)?);
        let shape =
            Transposition::new(rows, columns).batch(batch).with_input_pitch(pitch_in)?.with_output_pitch(pitch_out)?;
        let from = input.view().slice(before_in, batch * rows * pitch_in)?;
        let to = output.view_mut().slice(before_out, batch * columns * pitch_out)?;
        gpu.transpose_views(shape, from, to)?;
        gpu.download(&output)
    };
    let found = run().map_err(|error: Error| format!("{case:?}: {error}"))?;
    let is_wrong = |(found, expected): (&T, &T)| found.bits() != expected.bits();
    match found.iter().zip(&expected).position(is_wrong) {
        None => Ok(()),
        Some(at) => Err(format!(
            "{case:?} of {} bytes: element {at} is {:x?}, should be {:x?}",
            size_of::<T>(),
            found[at].bits(),
            expected[at].bits()
        )),
    }
}

/// Sides around every boundary of a tile and a square of elements of up to 16 bytes.
pub const SIDES: [usize; 19] = [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257];
