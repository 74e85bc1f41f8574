//! The states of many exact sums, of any type of elements.

use std::any::Any;

use bytemuck::Pod;
use half::{bf16, f16};
use warpfold::exact::bytes::FromBytesError;
use warpfold::exact::words::{Words, WordsError};
use warpfold::exact::{ExactDot, ExactSum, MAX_ELEMENTS, Rounded, TooManyElements};
use warpfold::host::{self, Array, View};
use warpfold::{Axes, Element, Error};

use crate::dtype::DType;
use crate::operators::Operand;

/// What is summed of each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Sum,
    SumOfSquares,
}

impl Kind {
    /// The name in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::SumOfSquares => "sum_of_squares",
        }
    }
}

/// What is computed of each sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    Value,
    /// Of a [`Kind::Sum`].
    Mean,
    /// Of a [`Kind::SumOfSquares`].
    Norm,
}

/// The state of one exact sum.
trait State: Words + Copy + PartialEq + Send + Sync + 'static {
    const KIND: Kind;
    const DTYPE: DType;
    type Element: Element;

    fn empty() -> Self;
    fn of(view: View<'_, Self::Element>, axes: Axes) -> Result<Array<Self>, Error>;
    fn count(&self) -> u64;
    fn merge(&mut self, other: &Self) -> Result<(), TooManyElements>;
    fn finish<R: Rounded>(&self, finish: Finish) -> R;
    fn to_bytes(&self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Result<Self, FromBytesError>;
}

/// Makes the types of states from rows: a type of elements, and its name in [`DType`].
macro_rules! states {
    ($($type:ident is $dtype:ident;)*) => {
        $(
            states!(ExactSum of $type is $dtype, Kind::Sum, host::exact_sums, Mean as mean);
            states!(ExactDot of $type is $dtype, Kind::SumOfSquares, host::exact_sums_of_squares, Norm as sqrt);
        )*

        /// The exact sums of an array of floats along axes, in C order, with the extents of the others.
        pub fn of_array(kind: Kind, array: &Operand<'_>, axes: Axes) -> Result<(Vec<usize>, Box<dyn States>), Error> {
            match (kind, array.dtype) {
                $(
                    (Kind::Sum, DType::$dtype) => reduced::<ExactSum<$type>>(array, axes),
                    (Kind::SumOfSquares, DType::$dtype) => reduced::<ExactDot<$type>>(array, axes),
                )*
                (kind, dtype) => unreachable!("{} of {}", kind.name(), dtype.name()),
            }
        }

        /// The states whose bytes follow one another in `bytes`, `count` of them.
        pub fn from_bytes(kind: Kind, dtype: DType, count: usize, bytes: &[u8]) -> Result<Box<dyn States>, Damage> {
            match (kind, dtype) {
                $(
                    (Kind::Sum, DType::$dtype) => read::<ExactSum<$type>>(count, bytes),
                    (Kind::SumOfSquares, DType::$dtype) => read::<ExactDot<$type>>(count, bytes),
                )*
                (kind, dtype) => unreachable!("{} of {}", kind.name(), dtype.name()),
            }
        }

        /// The states with these words, one state after the other.
        pub fn from_words(kind: Kind, dtype: DType, words: &[i64]) -> Result<Box<dyn States>, WordsError> {
            match (kind, dtype) {
                $(
                    (Kind::Sum, DType::$dtype) => of_words::<ExactSum<$type>>(words),
                    (Kind::SumOfSquares, DType::$dtype) => of_words::<ExactDot<$type>>(words),
                )*
                (kind, dtype) => unreachable!("{} of {}", kind.name(), dtype.name()),
            }
        }
    };
    ($state:ident of $type:ident is $dtype:ident, $kind:expr, $reduce:path, $Other:ident as $other:ident) => {
        impl State for $state<$type> {
            const KIND: Kind = $kind;
            const DTYPE: DType = DType::$dtype;
            type Element = $type;

            fn empty() -> Self {
                Self::new()
            }
            fn of(view: View<'_, $type>, axes: Axes) -> Result<Array<Self>, Error> {
                $reduce(view, axes)
            }
            fn count(&self) -> u64 {
                self.count()
            }
            fn merge(&mut self, other: &Self) -> Result<(), TooManyElements> {
                self.merge(other)
            }
            fn finish<R: Rounded>(&self, finish: Finish) -> R {
                match finish {
                    Finish::Value => self.rounded(),
                    Finish::$Other => self.$other(),
                    finish => unreachable!("{finish:?} of {}", $kind.name()),
                }
            }
            fn to_bytes(&self) -> Vec<u8> {
                self.to_bytes()
            }
            fn from_bytes(bytes: &[u8]) -> Result<Self, FromBytesError> {
                Self::from_bytes(bytes)
            }
        }
    };
}

states! {
    f16 is Float16;
    bf16 is BFloat16;
    f32 is Float32;
    f64 is Float64;
}

/// The states of exact sums of one kind and one type of elements.
pub trait States: Send + Sync {
    /// What is summed.
    fn kind(&self) -> Kind;
    /// The type of the elements.
    fn dtype(&self) -> DType;
    /// The number of bytes in memory.
    fn size(&self) -> usize;
    /// The number of terms of each sum.
    fn counts(&self) -> Vec<i64>;
    /// Adds the terms of as many other sums of the same kind and type. Nothing is added if one would have too many.
    fn merge(&mut self, other: &dyn States) -> Result<(), TooManyElements>;
    /// Each sum, mean or norm, rounded once to a type of floats: the bytes of the results.
    fn finish(&self, finish: Finish, dtype: DType) -> Vec<u8>;
    /// Whether the other sums are of the same kind and type, and equal to these.
    fn is_equal(&self, other: &dyn States) -> bool;
    /// Appends the bytes of each state, of version 1.
    fn write(&self, bytes: &mut Vec<u8>);
    /// The words, one state after the other, and the number of words of a state.
    fn words(&self) -> (Vec<i64>, usize);
    fn copy(&self) -> Box<dyn States>;
    fn as_any(&self) -> &dyn Any;
}

impl<S: State> States for Vec<S> {
    fn kind(&self) -> Kind {
        S::KIND
    }

    fn dtype(&self) -> DType {
        S::DTYPE
    }

    fn size(&self) -> usize {
        size_of_val(&self[..])
    }

    fn counts(&self) -> Vec<i64> {
        self.iter().map(|state| state.count() as i64).collect()
    }

    fn merge(&mut self, other: &dyn States) -> Result<(), TooManyElements> {
        let other = other.as_any().downcast_ref::<Self>().expect("sums of the same kind and type");
        assert_eq!(self.len(), other.len(), "as many sums");
        for (state, other) in self.iter().zip(other) {
            let count = state.count() + other.count();
            if count > MAX_ELEMENTS {
                return Err(TooManyElements { count });
            }
        }
        self.iter_mut().zip(other).try_for_each(|(state, other)| state.merge(other))
    }

    fn finish(&self, finish: Finish, dtype: DType) -> Vec<u8> {
        match dtype {
            DType::Float16 => rounded::<S, f16>(self, finish),
            DType::BFloat16 => rounded::<S, bf16>(self, finish),
            DType::Float32 => rounded::<S, f32>(self, finish),
            DType::Float64 => rounded::<S, f64>(self, finish),
            other => unreachable!("a sum rounded to {}", other.name()),
        }
    }

    fn is_equal(&self, other: &dyn States) -> bool {
        other.as_any().downcast_ref::<Self>().is_some_and(|other| self == other)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.reserve_exact(self.len() * S::empty().to_bytes().len());
        self.iter().for_each(|state| bytes.extend(state.to_bytes()));
    }

    fn words(&self) -> (Vec<i64>, usize) {
        (self.iter().flat_map(S::words).collect(), S::WORDS)
    }

    fn copy(&self) -> Box<dyn States> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn reduced<S: State>(array: &Operand<'_>, axes: Axes) -> Result<(Vec<usize>, Box<dyn States>), Error> {
    let sums = S::of(array.view()?, axes)?;
    Ok((sums.extents().to_vec(), Box::new(sums.into_vec())))
}

fn of_words<S: State>(words: &[i64]) -> Result<Box<dyn States>, WordsError> {
    let states: Result<Vec<S>, _> = words.chunks(S::WORDS).map(S::from_words).collect();
    Ok(Box::new(states?))
}

fn rounded<S: State, R: Rounded + Pod>(states: &[S], finish: Finish) -> Vec<u8> {
    let results: Vec<R> = states.iter().map(|state| state.finish(finish)).collect();
    bytemuck::cast_slice(&results).to_vec()
}

/// What is wrong with the bytes of states.
pub enum Damage {
    /// There are more or fewer bytes than the states have.
    Length { expected: Option<usize> },
    /// A state is not as its bytes should be.
    State(FromBytesError),
}

fn read<S: State>(count: usize, bytes: &[u8]) -> Result<Box<dyn States>, Damage> {
    let of_each = S::empty().to_bytes().len();
    let expected = count.checked_mul(of_each);
    if expected != Some(bytes.len()) {
        return Err(Damage::Length { expected });
    }
    let states: Result<Vec<S>, _> = bytes.chunks_exact(of_each).map(S::from_bytes).collect();
    states.map(|states| Box::new(states) as Box<dyn States>).map_err(Damage::State)
}
