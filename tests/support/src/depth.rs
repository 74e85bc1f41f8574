//! How many combinations an element passes through, counted by the kernels. Only in the executor.

use cuda_std::prelude::*;
use half::f16;
use kernels::ops::Operator;
use kernels::reduce::tuning::order;
use warpfold::{Error, Gpu, Reduction};

/// The height of the tree in which elements are combined.
#[derive(Clone, Copy, Default)]
pub struct Height;

macro_rules! heights {
    ($($type:ident: $state:ident;)*) => {$(
        impl Operator<$type> for Height {
            /// One more than the height; 0 for no elements. As long as the state of a sum, which the order depends on.
            type State = $state;
            type Output = u64;
            const NEUTRAL: $state = 0;

            fn lift(self, _element: $type, _index: u64) -> $state {
                1
            }
            fn combine(a: $state, b: $state) -> $state {
                if a == 0 || b == 0 { a + b } else { 1 + if a > b { a } else { b } }
            }
            fn finish(self, state: $state, _count: u64) -> u64 {
                u64::from(state.saturating_sub(1))
            }
        }
    )*};
}

heights! {
    f32: u32;
    f64: u64;
    f16: u32;
}

kernels::reductions! {
    Height of f32, f64, f16: "the height";
}

/// Checks that no element of an input, a column and a segment passes through more combinations than
/// `tuning::order` says, and at least one through nearly as many.
///
/// # Errors
/// If one does, or none; or on an error of the library.
pub fn depths<T: Element>(gpu: &Gpu) -> Result<(), String>
where
    Height: Reduction<T, Output = u64>,
{
    let size = size_of::<T>();
    let check = |what: &str, len: usize, found: Result<u64, Error>, documented: usize| {
        let found = found.map_err(|error| error.to_string())? as usize;
        if found > documented || found + 4 < documented {
            return Err(format!("{what} of {len} elements of {size} bytes: {found}, documented {documented}"));
        }
        Ok(())
    };
    let lengths = [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 100, 129, 255, 257, 511, 513, 1000, 1024, 1025]
        .into_iter()
        .chain([2049, 4097, 5000, 8191, 9001, 16_384, 20_000, 70_000, 150_001, (1 << 20) + 3, 1 << 20, 2_200_003]);
    for len in lengths {
        let input = gpu.zeroed::<T>(len).map_err(|error| error.to_string())?;
        check("an input", len, gpu.reduce_all(Height, &input), order::depth(len, size))?;
        let first = |outputs: Result<warpfold::Buffer<u64>, Error>| Ok(gpu.download(&outputs?)?[0]);
        // A single column would be a row.
        let columns = gpu.zeroed::<T>(2 * len).and_then(|columns| columns.reshape(&[len, 2]));
        let of_columns = columns.and_then(|columns| gpu.reduce(Height, &columns, 0));
        let column = of_columns.map(warpfold::Array::into_buffer);
        check("a column", len, first(column), order::depth_of_column(len, size))?;
        let offsets = gpu.upload(&[0, len as u64]).map_err(|error| error.to_string())?;
        let segment = gpu.reduce_segments(Height, &input, &offsets);
        check("a segment", len, first(segment), order::depth_of_segment(len, size))?;
    }
    Ok(())
}
