//! Sums as bytes, to be kept or sent.
//!
//! Version 1, all numbers little-endian:
//!
//! | bytes | what they are |
//! |---|---|
//! | 0 to 3 | `xsum` |
//! | 4 | the version, 1 |
//! | 5 | the type of the elements: 1 `f16`, 2 `bf16`, 3 `f32`, 4 `f64`; 16 more of products |
//! | 6 | what was not finite: 1 NaN, 2 infinity, 4 negative infinity; of the first no other with it |
//! | 7 | 0 |
//! | 8 to 15 | how many elements |
//! | 16 on | the sum in units of the least number, or of its square, in two's complement; 0 unless all was finite |
//! | the last 4 | CRC-32 of all before |
//!
//! Equal sums of as many elements are equal bytes.

use alloc::vec::Vec;
use core::fmt;

use crate::compact::Specials;
use crate::sum::{ExactDot, ExactSum, MOST_ELEMENTS, State, Summand, Superaccumulator, width};

const MAGIC: [u8; 4] = *b"xsum";
const VERSION: u8 = 1;
const HEADER: usize = 16;
const CHECKSUM: usize = 4;
/// Added to the type's code where products are summed.
const OF_PRODUCTS: u8 = 16;

/// Bytes that are no sum of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FromBytesError {
    /// They do not begin as a sum does.
    NotASum,
    /// They are of a version that this crate does not know.
    Version {
        /// The version that they are of.
        found: u8,
    },
    /// They are the sum of another type.
    Type {
        /// The code of the type that they are of.
        found: u8,
        /// That of the type that was asked for.
        expected: u8,
    },
    /// There are more or fewer than a sum of this type has.
    Length {
        /// How many there are.
        found: usize,
        /// How many a sum has.
        expected: usize,
    },
    /// They were altered: their checksum is another one, or no sum is written as they are.
    Altered,
}

impl fmt::Display for FromBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASum => write!(f, "these bytes are no exact sum: they do not begin with `xsum`"),
            Self::Version { found } => {
                write!(f, "an exact sum of version {found}: this program reads version {VERSION}; update it")
            }
            Self::Type { found, expected } => {
                write!(f, "an exact sum of {}, where one of {} is read", Type(*found), Type(*expected))
            }
            Self::Length { found, expected } => {
                write!(f, "an exact sum of {found} bytes, where one of this type has {expected}: it was cut off")
            }
            Self::Altered => write!(f, "an exact sum whose bytes were altered after it was written"),
        }
    }
}

impl core::error::Error for FromBytesError {}

/// A type's code, for messages.
struct Type(u8);

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let products = if self.0 & OF_PRODUCTS != 0 { "products of " } else { "" };
        let name = match self.0 & !OF_PRODUCTS {
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

/// How many bytes a sum has.
const fn length<L: Superaccumulator>() -> usize {
    HEADER + 4 * L::LEN + CHECKSUM
}

/// The state of such bytes, if its terms are below `2^width`.
fn read<L: Superaccumulator>(bytes: &[u8], code: u8, width: u32) -> Result<State<L>, FromBytesError> {
    let length_error = FromBytesError::Length { found: bytes.len(), expected: length::<L>() };
    if !bytes.starts_with(&MAGIC) {
        return Err(if MAGIC.starts_with(bytes) { length_error } else { FromBytesError::NotASum });
    }
    let &[_, _, _, _, version, found, specials, zero, ..] = bytes else { return Err(length_error) };
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
        return Err(FromBytesError::Altered);
    }
    let specials = Specials::from_bits(specials).filter(|&specials| specials == specials.canonical() && zero == 0);
    let mut state = State { specials: specials.ok_or(FromBytesError::Altered)?, ..State::<L>::default() };
    let (count, limbs) = content[8..].split_at(8);
    state.count = count.iter().rev().fold(0, |count, &byte| count << 8 | u64::from(byte));
    for (k, limb) in limbs.chunks_exact(4).enumerate() {
        let limb = limb.iter().rev().fold(0_u32, |limb, &byte| limb << 8 | u32::from(byte));
        // The sign is that of the last limb.
        let limb = if k + 1 == L::LEN { i64::from(limb as i32) } else { i64::from(limb) };
        state.limbs.add_to_limb(k, limb);
    }
    if state.count > MOST_ELEMENTS || !is_possible(&state, width) || write(state, code) != bytes {
        return Err(FromBytesError::Altered);
    }
    Ok(state)
}

/// Whether so many terms below `2^width` may have this sum: if not, there may be no room for what is merged with it.
fn is_possible<L: Superaccumulator>(state: &State<L>, width: u32) -> bool {
    let leading = state.limbs.leading();
    leading.bits == 0 || state.count > 0 && leading.position + 127 <= (width + state.count.ilog2()) as i32
}

macro_rules! bytes {
    ($($sum:ident, $code:expr, $width:expr;)*) => {$(
        impl<T: Summand> $sum<T> {
            const CODE: u8 = $code;

            /// The sum as bytes, of [version 1](crate::bytes). Equal sums of as many elements are equal bytes.
            pub fn to_bytes(&self) -> Vec<u8> {
                write(self.state, Self::CODE)
            }

            /// The sum of such bytes.
            ///
            /// # Errors
            /// They are of another version or type, were cut off, or altered.
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
    ExactDot, T::CODE + OF_PRODUCTS, 2 * width::<T::Binary>();
}
