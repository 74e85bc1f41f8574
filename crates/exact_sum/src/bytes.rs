//! Sums as bytes, for storage and transmission.
//!
//! Version 1, all numbers little-endian:
//!
//! | bytes | contents |
//! |---|---|
//! | 0 to 3 | `xsum` |
//! | 4 | the version, 1 |
//! | 5 | the element type: 1 `f16`, 2 `bf16`, 3 `f32`, 4 `f64`; plus 16 for sums of products |
//! | 6 | non-finite elements: 1 NaN, or infinities of both signs; else 2 infinity, 4 negative infinity |
//! | 7 | 0 |
//! | 8 to 15 | the number of elements |
//! | from 16 | the sum in two's complement, in units of the smallest number or its square; 0 if it is not finite |
//! | the last 4 | CRC-32 of the other bytes |
//!
//! Equal sums of equally many elements have equal bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::compact::Specials;
use crate::sum::{ExactDot, ExactSum, MAX_ELEMENTS, State, Summand, Superaccumulator, width};
use crate::words::is_possible;

const MAGIC: [u8; 4] = *b"xsum";
const VERSION: u8 = 1;
const HEADER: usize = 16;
const CHECKSUM: usize = 4;
/// Added to the type's code for sums of products.
const PRODUCTS: u8 = 16;

/// The reason that bytes are not a sum of the requested type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FromBytesError {
    /// The bytes do not begin with the signature of a sum.
    NotASum,
    /// The bytes have a version that this crate does not know.
    Version {
        /// The version.
        found: u8,
    },
    /// The bytes are a sum of another type.
    Type {
        /// The code of the bytes' type.
        found: u8,
        /// The code of the requested type.
        expected: u8,
    },
    /// There are more or fewer bytes than in a sum of this type.
    Length {
        /// The number of bytes.
        found: usize,
        /// The number of bytes of a sum.
        expected: usize,
    },
    /// The bytes are corrupt: the checksum is wrong, or no sum has them.
    Corrupt,
}

impl fmt::Display for FromBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASum => write!(f, "these bytes are not an exact sum: they do not begin with `xsum`"),
            Self::Version { found } => {
                write!(f, "an exact sum of version {found}: this program reads version {VERSION}; update it")
            }
            Self::Type { found, expected } => {
                write!(f, "an exact sum of {}, expected one of {}", Type(*found), Type(*expected))
            }
            Self::Length { found, expected } => {
                write!(f, "an exact sum of {found} bytes, expected {expected}: it was cut off, or more bytes follow it")
            }
            Self::Corrupt => write!(f, "an exact sum whose bytes are corrupt: they were altered after it was written"),
        }
    }
}

impl core::error::Error for FromBytesError {}

/// A type's code, for messages.
struct Type(u8);

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let products = if self.0 & PRODUCTS != 0 { "products of " } else { "" };
        let name = match self.0 & !PRODUCTS {
            1 => "f16",
            2 => "bf16",
            3 => "f32",
            4 => "f64",
            _ => return write!(f, "an unknown type (code {})", self.0),
        };
        write!(f, "{products}{name}")
    }
}

fn write<L: Superaccumulator>(state: State<L>, code: u8) -> Vec<u8> {
    let state = state.canonical();
    let mut bytes = Vec::with_capacity(length::<L>());
    bytes.extend(MAGIC);
    bytes.extend([VERSION, code, state.specials.bits(), 0]);
    bytes.extend(state.count.to_le_bytes());
    for k in 0..L::LEN {
        bytes.extend((state.limbs.limb(k) as u32).to_le_bytes());
    }
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

/// The number of bytes of a sum.
const fn length<L: Superaccumulator>() -> usize {
    HEADER + 4 * L::LEN + CHECKSUM
}

/// Reads a state whose terms are below `2^width`.
fn read<L: Superaccumulator>(bytes: &[u8], code: u8, width: u32) -> Result<State<L>, FromBytesError> {
    let length_error = FromBytesError::Length { found: bytes.len(), expected: length::<L>() };
    if !bytes.starts_with(&MAGIC) {
        return Err(if MAGIC.starts_with(bytes) { length_error } else { FromBytesError::NotASum });
    }
    let &[_, _, _, _, version, found, specials, ..] = bytes else { return Err(length_error) };
    if version != VERSION {
        return Err(FromBytesError::Version { found: version });
    }
    if found != code {
        return Err(FromBytesError::Type { found, expected: code });
    }
    if bytes.len() != length::<L>() {
        return Err(length_error);
    }
    let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM);
    if crc32fast::hash(content).to_le_bytes() != checksum {
        return Err(FromBytesError::Corrupt);
    }
    let specials = Specials::from_bits(specials).ok_or(FromBytesError::Corrupt)?;
    let mut state = State { specials, ..State::<L>::default() };
    let Some((count, limbs)) = content[8..].split_first_chunk() else { return Err(length_error) };
    state.count = u64::from_le_bytes(*count);
    for (k, &limb) in limbs.as_chunks().0.iter().enumerate() {
        let limb = u32::from_le_bytes(limb);
        // The last limb carries the sign.
        let limb = if k + 1 == L::LEN { i64::from(limb as i32) } else { i64::from(limb) };
        state.limbs.add_to_limb(k, limb);
    }
    // Bytes that are not canonical differ from those that `write` makes of the same sum.
    if state.count > MAX_ELEMENTS || !is_possible(&state, width) || write(state, code) != bytes {
        return Err(FromBytesError::Corrupt);
    }
    Ok(state)
}

macro_rules! bytes {
    ($($sum:ident, $code:expr, $width:expr;)*) => {$(
        impl<T: Summand> $sum<T> {
            const CODE: u8 = $code;

            /// The sum as bytes, of [version 1](crate::bytes). Equal sums of equally many elements have equal bytes.
            pub fn to_bytes(&self) -> Vec<u8> {
                write(self.state, Self::CODE)
            }

            /// Reads a sum from its bytes.
            ///
            /// # Errors
            /// If the bytes have another version or type, are truncated, or are corrupt.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self, FromBytesError> {
                read(bytes, Self::CODE, $width).map(|state| Self { state })
            }
        }

        #[cfg(feature = "serde")]
        impl<T: Summand> serde::Serialize for $sum<T> {
            /// As [bytes](crate::bytes).
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.to_bytes(), serializer)
            }
        }

        #[cfg(feature = "serde")]
        impl<'de, T: Summand> serde::Deserialize<'de> for $sum<T> {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let bytes = <Vec<u8> as serde::Deserialize>::deserialize(deserializer)?;
                Self::from_bytes(&bytes).map_err(serde::de::Error::custom)
            }
        }
    )*};
}

bytes! {
    ExactSum, T::CODE, width::<T::Binary>();
    ExactDot, T::CODE + PRODUCTS, 2 * width::<T::Binary>();
}
