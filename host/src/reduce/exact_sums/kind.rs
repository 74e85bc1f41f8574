//! The kinds of exact sums, and their kernels.

use cuda_std::element::{Element, Plain};
use exact_sum::words::Words;
use exact_sum::{ExactDot, ExactSum, Summand};
use half::{bf16, f16};
use kernels::ops::{Dot, Sum, SumOfSquares};
use kernels::reduce::exact::lane_memory::LaneMemory;
use kernels::reduce::exact::long_rows::lane_memory;
use kernels::reduce::exact::result::IN_OTHER_FORMAT;
use kernels::reduce::exact::states::all::exact_state_values;
use kernels::reduce::exact::states::columns::{StateColumnArgs, exact_states_of_columns};
use kernels::reduce::exact::states::long_rows::{StatePairArgs, exact_states_of_long_rows, exact_states_of_pairs};
use kernels::reduce::exact::states::rows::exact_states_of_rows;
use kernels::reduce::exact::terms;

use crate::reduce::private::Token;
use crate::{AnyBlock, Kernel};

/// A type of elements whose sums are exact: `f16`, `bf16`, `f32` or `f64`.
///
/// Sealed: only this crate implements it.
pub trait ExactElement: Element + Summand<Sum: SumFormat<Self>> + SumFormat<Self> {
    /// The kernels for states.
    #[doc(hidden)]
    fn states(_: Token) -> StateKernels<Self>;
}

/// The kernels for states of elements of one type.
#[doc(hidden)]
pub struct StateKernels<T: ExactElement> {
    pub(super) long_rows: LongRowKernel<exact_states_of_long_rows::Args<'static, T>>,
    pub(super) rows: Kernel<exact_states_of_rows::Args<'static, T>>,
    pub(super) columns: Kernel<StateColumnArgs<'static, T>>,
    pub(super) squares: LongRowKernel<exact_states_of_long_rows::Args<'static, T>>,
    pub(super) pairs: LongRowKernel<StatePairArgs<'static, T>>,
    values: Kernel<exact_state_values::Args<'static>>,
    values_of_products: Kernel<exact_state_values::Args<'static>>,
}

/// A kernel that adds long rows to states, and its dynamic shared memory.
pub(super) struct LongRowKernel<A> {
    pub kernel: AnyBlock<A>,
    pub lane_memory: LaneMemory,
}

/// A kind of exact sum on the host: [`ExactSum`] of elements, or [`ExactDot`] of products.
/// [`ExactStates`](super::ExactStates) are such sums on a device.
///
/// Sealed: only this crate implements it.
pub trait ExactState: Words + Clone + 'static {
    /// The type of the elements.
    type Element: ExactElement;
    /// [`ExactSum::count`].
    #[doc(hidden)]
    fn count_of(&self, _: Token) -> u64;
    /// The kernel that rounds states.
    #[doc(hidden)]
    fn values(_: &StateKernels<Self::Element>) -> Kernel<exact_state_values::Args<'static>>;
}

impl<T: ExactElement> ExactState for ExactSum<T> {
    type Element = T;

    fn count_of(&self, _: Token) -> u64 {
        self.count()
    }

    fn values(kernels: &StateKernels<T>) -> Kernel<exact_state_values::Args<'static>> {
        kernels.values
    }
}

impl<T: ExactElement> ExactState for ExactDot<T> {
    type Element = T;

    fn count_of(&self, _: Token) -> u64 {
        self.count()
    }

    fn values(kernels: &StateKernels<T>) -> Kernel<exact_state_values::Args<'static>> {
        kernels.values_of_products
    }
}

/// A type to which exact sums of elements `T` are rounded: [`Summand::Sum`], or another one. Sums of `f16` and `bf16`
/// are also rounded to the elements' type, those of `f32` to `f64`; each once.
///
/// Sealed: only this crate implements it.
pub trait SumFormat<T>: Plain {
    /// The kernels' argument `finish`.
    #[doc(hidden)]
    const FINISH: u32;
}

macro_rules! exact_elements {
    ($($type:ident to $($sum:ident $finish:expr),*;)*) => {$(
        impl ExactElement for $type {
            fn states(_: Token) -> StateKernels<Self> {
                // SAFETY: no holder of the handles can launch them: only `ExactStates` does, with what it has checked.
                unsafe {
                    StateKernels {
                        long_rows: LongRowKernel {
                            kernel: exact_states_of_long_rows::handle::<Sum, Self>(),
                            lane_memory: lane_memory::<terms::Elements<Self>>(),
                        },
                        rows: exact_states_of_rows::handle::<Self>(),
                        columns: exact_states_of_columns::handle::<Self>(),
                        squares: LongRowKernel {
                            kernel: exact_states_of_long_rows::handle::<SumOfSquares, Self>(),
                            lane_memory: lane_memory::<terms::Squares<Self>>(),
                        },
                        pairs: LongRowKernel {
                            kernel: exact_states_of_pairs::handle::<Dot, Self>(),
                            lane_memory: lane_memory::<terms::Products<Self>>(),
                        },
                        values: exact_state_values::handle::<Sum, Self>(),
                        // Sums of products of any factors are rounded as those of squares.
                        values_of_products: exact_state_values::handle::<SumOfSquares, Self>(),
                    }
                }
            }
        }

        $(impl SumFormat<$type> for $sum {
            const FINISH: u32 = $finish;
        })*
    )*};
}

exact_elements! {
    f16 to f32 0, f16 IN_OTHER_FORMAT;
    bf16 to f32 0, bf16 IN_OTHER_FORMAT;
    f32 to f32 0, f64 IN_OTHER_FORMAT;
    f64 to f64 0;
}

#[cfg(test)]
mod tests {
    use kernels::reduce::exact::grid::{DoubleProducts, Doubles, SingleProducts, Singles};
    use kernels::reduce::exact::states::words_of_state;
    use kernels::reduce::exact::superaccumulator_words::Special;

    use super::*;

    #[test]
    fn states_of_devices_have_the_words_of_sums() {
        assert_eq!(ExactSum::<f32>::WORDS, words_of_state::<Singles>());
        assert_eq!(ExactSum::<f64>::WORDS, words_of_state::<Doubles>());
        assert_eq!(ExactDot::<f32>::WORDS, words_of_state::<SingleProducts>());
        assert_eq!(ExactDot::<f64>::WORDS, words_of_state::<DoubleProducts>());
        assert_eq!(
            [Special::Nan, Special::Infinity, Special::NegativeInfinity].map(|special| special as u32),
            [0, 1, 2]
        );
    }
}
