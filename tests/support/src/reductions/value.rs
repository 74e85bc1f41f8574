//! Numbers of any type, for comparisons.

use half::{bf16, f16};

/// A number. Numbers of every element type fit in one of the variants exactly.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
}

impl Value {
    /// The nearest float: integers beyond 2^53 are rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Int(x) => x as f64,
            Self::Float(x) => x,
        }
    }

    /// The integer; 0 for a float.
    pub fn as_int(self) -> i128 {
        match self {
            Self::Int(x) => x,
            Self::Float(_) => 0,
        }
    }

    /// Whether the number is NaN.
    pub fn is_nan(self) -> bool {
        matches!(self, Self::Float(x) if x.is_nan())
    }
}

macro_rules! ints {
    ($($type:ident),*) => {$(
        impl From<$type> for Value {
            fn from(x: $type) -> Self {
                Self::Int(x.into())
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ident),*) => {$(
        impl From<$type> for Value {
            fn from(x: $type) -> Self {
                Self::Float(x.into())
            }
        }
    )*};
}

ints!(i8, i16, i32, i64, u8, u16, u32, u64);
floats!(f16, bf16, f32, f64);

/// The output of an operator: one number, or two.
pub trait Values {
    /// The numbers.
    fn values(&self) -> Vec<Value>;
    /// The bits of the numbers.
    fn bytes(&self) -> Vec<u8>;
}

macro_rules! values {
    ($($type:ident),*) => {$(
        impl Values for $type {
            fn values(&self) -> Vec<Value> {
                vec![(*self).into()]
            }
            fn bytes(&self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
        impl Values for [$type; 2] {
            fn values(&self) -> Vec<Value> {
                self.iter().map(|&x| x.into()).collect()
            }
            fn bytes(&self) -> Vec<u8> {
                self.iter().flat_map(|x| x.to_le_bytes()).collect()
            }
        }
    )*};
}

values!(i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64);
