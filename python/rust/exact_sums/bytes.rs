//! Arrays of exact sums as bytes.
//!
//! Version 1, all numbers little-endian:
//!
//! | bytes | contents |
//! |---|---|
//! | 0 to 3 | `xsms` |
//! | 4 | the version, 1 |
//! | 5 | the element type, as in the bytes of a sum: 1 `f16`, 2 `bf16`, 3 `f32`, 4 `f64`; plus 16 for sums of squares |
//! | 6 | the number of axes, at most 32 |
//! | 7 | 0 |
//! | 8 for each axis | the number of sums along it |
//! | then | the bytes of each sum, of version 1, in C order |
//! | the last 4 | CRC-32 of the other bytes |

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::Sums;
use super::states::{self, Damage, Kind};
use crate::dtype::DType;

const MAGIC: [u8; 4] = *b"xsms";
const VERSION: u8 = 1;
const HEADER: usize = 8;
const CHECKSUM: usize = 4;
const MAX_AXES: usize = 32;
/// Added to the type's code for sums of squares.
const SQUARES: u8 = 16;
/// The types of elements, whose codes are 1, 2, and so on.
const TYPES: [DType; 4] = [DType::Float16, DType::BFloat16, DType::Float32, DType::Float64];

/// The bytes of sums.
pub fn write(sums: &Sums) -> Vec<u8> {
    let of_type = TYPES.iter().position(|dtype| *dtype == sums.states.dtype()).expect("a type of floats") as u8 + 1;
    let code = of_type + if sums.states.kind() == Kind::SumOfSquares { SQUARES } else { 0 };
    let mut bytes = MAGIC.to_vec();
    bytes.extend([VERSION, code, sums.extents.len() as u8, 0]);
    sums.extents.iter().for_each(|&extent| bytes.extend((extent as u64).to_le_bytes()));
    sums.states.write(&mut bytes);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// The sums with these bytes.
pub fn read(bytes: &[u8]) -> PyResult<Sums> {
    let refused = |why: String| PyValueError::new_err(format!("these bytes are no ExactSums: {why}"));
    let too_few = || refused(format!("{} bytes were cut off", bytes.len()));
    let damaged = || refused("they were altered after they were written".into());
    if !bytes.starts_with(&MAGIC) {
        let is_cut = MAGIC.starts_with(bytes);
        return Err(if is_cut { too_few() } else { refused("they do not begin with `xsms`, as bytes(s) does".into()) });
    }
    let Some((header, rest)) = bytes.split_first_chunk::<HEADER>() else { return Err(too_few()) };
    let [_, _, _, _, version, code, axes, _] = *header;
    if version != VERSION {
        return Err(refused(format!(
            "they have version {version}, and this package reads version {VERSION}: update it"
        )));
    }
    let (of_type, axes) = (usize::from(code & !SQUARES), usize::from(axes));
    let Some(&dtype) = TYPES.get(of_type.wrapping_sub(1)).filter(|_| axes <= MAX_AXES) else { return Err(damaged()) };
    let Some((shape, rest)) = rest.split_at_checked(axes * 8) else { return Err(too_few()) };
    let Some((states, checksum)) = rest.split_last_chunk::<CHECKSUM>() else { return Err(too_few()) };
    let kind = if code & SQUARES == 0 { Kind::Sum } else { Kind::SumOfSquares };
    let extents: Option<Vec<usize>> =
        shape.as_chunks().0.iter().map(|extent| u64::from_le_bytes(*extent).try_into().ok()).collect();
    let Some(extents) = extents else { return Err(damaged()) };
    let Some(count) = count(&extents) else { return Err(damaged()) };
    let is_whole = crc32fast::hash(&bytes[..bytes.len() - CHECKSUM]).to_le_bytes() == *checksum;
    match states::from_bytes(kind, dtype, count, states) {
        Ok(states) if is_whole => Ok(Sums { extents, states }),
        Err(Damage::Length { expected: Some(expected) }) if expected > states.len() => Err(too_few()),
        Err(Damage::Length { expected: Some(expected) }) if !is_whole => {
            Err(refused(format!("{} bytes follow them", states.len() - expected)))
        }
        Err(Damage::State(error)) if is_whole => Err(refused(error.to_string())),
        _ => Err(damaged()),
    }
}

/// The number of sums in an array of these extents, if memory can have as many.
fn count(extents: &[usize]) -> Option<usize> {
    // An extent may be large if another one is 0, as in NumPy's arrays, which the others limit all the same.
    let mut others = extents.iter().filter(|extent| **extent != 0);
    let others = others.try_fold(1_usize, |count, &extent| count.checked_mul(extent))?;
    if others > isize::MAX as usize { None } else { Some(extents.iter().product()) }
}
