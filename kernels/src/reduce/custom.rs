//! The macros that define the kernels of custom operators.

/// Defines the kernels of custom [operators](crate::ops::Operator), in a kernel crate.
///
/// Each line names an operator, its element types, and the operator's name in messages. The host then uses the operator
/// like a built-in one: whole inputs, rows, columns, axes and segments, also with a `Reducer`. An operator has five
/// kernels for each element type. It may have [fields](crate::ops::Operator::FIELDS), such as a threshold.
///
/// ```
/// use cuda_std::prelude::*;
/// use kernels::ops::Operator;
///
/// /// The largest absolute value.
/// #[derive(Clone, Copy, Default)]
/// pub struct Peak;
///
/// impl Operator<f32> for Peak {
///     type State = f32;
///     type Output = f32;
///     const NEUTRAL: f32 = 0.0;
///
///     fn lift(self, element: f32, _index: u64) -> f32 {
///         element.abs()
///     }
///     fn combine(a: f32, b: f32) -> f32 {
///         if a > b { a } else { b }
///     }
///     fn finish(self, state: f32, _count: u64) -> f32 {
///         state
///     }
/// }
///
/// kernels::reductions! {
///     Peak of f32: "the peak";
/// }
/// # fn main() {}
/// ```
///
/// An operator may be generic: the line `Above<3> of f32: "the number of elements above 3";` has its kernels for these
/// arguments, which are types, integers or bools.
///
/// A module has at most one `reductions!`. The crate depends on `cuda_std` and `kernels` under these names, and the
/// program loads the crate's PTX: see `examples/operator`.
#[macro_export]
macro_rules! reductions {
    ($($operator:ident $(<$($argument:tt),+>)? of $($element:ident),+ : $name:literal;)+) => {
        // In parentheses, the type is one token, which can be repeated for each element type.
        $crate::reductions! { @kernels $(($operator $(<$($argument),+>)?) of $($element),+ : $name;)+ }
    };
    (@kernels $($operator:tt of $($element:ident),+ : $name:literal;)+) => {
        #[allow(unused_parens)]
        mod reduction_kernels {
            #[allow(unused_imports)]
            use super::*;
            use $crate::ops::Operator;
            use $crate::reduce::columns::{self, ColumnArgs};
            use $crate::reduce::long_rows::{LongRowArgs, MAX_THREADS, fold_long_rows};
            use $crate::reduce::rows::{self, RowArgs};
            use $crate::reduce::segments::{self, LongSegmentArgs, SegmentArgs};

            $($(const _: () = $crate::ops::check::<$operator, $element>();)+)+

            #[::cuda_std::kernel(
                instances = $([$operator] x [$($element),+] +)+,
                max_threads = MAX_THREADS, min_blocks = 2, dependent_launch
            )]
            pub unsafe fn long_rows<O: Operator<T>, T: ::cuda_std::element::Element>(
                args: LongRowArgs<T, <O as Operator<T>>::Output>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { fold_long_rows::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$operator] x [$($element),+] +)+,
                block = rows::BLOCK,
                min_blocks = rows::min_blocks(size_of::<T>(), size_of::<<O as Operator<T>>::State>()),
                dependent_launch
            )]
            pub unsafe fn short_rows<O: Operator<T>, T: ::cuda_std::element::Element>(
                args: RowArgs<T, <O as Operator<T>>::Output>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { rows::rows::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$operator] x [$($element),+] +)+,
                block = columns::BLOCK,
                min_blocks =
                    columns::min_blocks(size_of::<<O as Operator<T>>::State>(), <O as Operator<T>>::ANY_ORDER),
                dependent_launch
            )]
            pub unsafe fn all_columns<O: Operator<T>, T: ::cuda_std::element::Element>(
                args: ColumnArgs<T, <O as Operator<T>>::State, <O as Operator<T>>::Output>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { columns::columns::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$operator] x [$($element),+] +)+,
                block = segments::BLOCK,
                min_blocks = segments::min_blocks(size_of::<T>()),
                dependent_launch
            )]
            pub unsafe fn short_segments<O: Operator<T>, T: ::cuda_std::element::Element>(
                args: SegmentArgs<T, <O as Operator<T>>::Output>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { segments::segments::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$operator] x [$($element),+] +)+,
                block = segments::BLOCK,
                dependent_launch
            )]
            pub unsafe fn long_segments<O: Operator<T>, T: ::cuda_std::element::Element>(
                args: LongSegmentArgs<T, <O as Operator<T>>::Output>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { segments::long_segments::<O, T>(args) };
            }

            ::cuda_std::on_host! {
                use $crate::reduce::reduction::{Kernels, Reduction, ReductionVisitor, StateHandles, StateKernels};

                $($(
                    impl Reduction<$element> for $operator {
                        type Output = <$operator as Operator<$element>>::Output;
                        type State = <$operator as Operator<$element>>::State;
                        const KEEPS_ORDER: bool = !<$operator as Operator<$element>>::ANY_ORDER;

                        fn kernels(self) -> Kernels<$element, Self::State, Self::Output> {
                            // SAFETY: `StateKernels` gives the handles out only by an unsafe call.
                            let handles = unsafe {
                                StateHandles {
                                    long_rows: long_rows::handle::<$operator, $element>(),
                                    long_rows_unaligned: None,
                                    rows: short_rows::handle::<$operator, $element>(),
                                    columns: all_columns::handle::<$operator, $element>(),
                                    segments: short_segments::handle::<$operator, $element>(),
                                    long_segments: long_segments::handle::<$operator, $element>(),
                                }
                            };
                            // SAFETY: these kernels reduce with this operator.
                            Kernels::OfStates(unsafe { StateKernels::new::<$operator>($name, self, handles) })
                        }

                        fn visit<V: ReductionVisitor<$element, Self::Output>>(self, visitor: V) -> V::Result {
                            visitor.operator::<$operator, $element>($name, self)
                        }
                    }
                )+)+
            }
        }
    };
}

/// Defines the kernels of custom [exact sums](crate::reduce::exact::custom::ExactTerm), in a kernel crate, as
/// [`reductions!`] does for operators that combine states.
///
/// ```
/// use cuda_std::prelude::*;
/// use kernels::reduce::exact::custom::ExactTerm;
///
/// /// The exact sum of absolute values.
/// #[derive(Clone, Copy, Default)]
/// pub struct Magnitude;
///
/// impl ExactTerm for Magnitude {
///     type Element = f32;
///     type Term = f32;
///     type Sum = f32;
///     fn term(self, x: f32) -> f32 {
///         x.abs()
///     }
/// }
///
/// kernels::exact_reductions! {
///     Magnitude of f32: "the sum of magnitudes";
/// }
/// # fn main() {}
/// ```
///
/// As in [`reductions!`], a term may be generic. It may have [fields](crate::reduce::exact::custom::ExactTerm::FIELDS),
/// such as a threshold.
#[macro_export]
macro_rules! exact_reductions {
    ($($term:ident $(<$($argument:tt),+>)? of $element:ident : $name:literal;)+) => {
        mod exact_reduction_kernels {
            #[allow(unused_imports)]
            use super::*;
            use $crate::reduce::columns;
            use $crate::reduce::exact::columns::{ExactColumnArgs, exact_columns};
            use $crate::reduce::exact::custom::ExactTerm;
            use $crate::reduce::exact::long_rows::{self, ExactLongRowArgs, exact_long_rows};
            use $crate::reduce::exact::long_segments::{self, ExactLongSegmentArgs, exact_long_segments};
            use $crate::reduce::exact::result::ExactOperator;
            use $crate::reduce::exact::rows::{self, ExactRowArgs, exact_rows};
            use $crate::reduce::exact::segments::{ExactSegmentArgs, exact_segments};
            use $crate::reduce::segments;

            $(const _: () = $crate::reduce::exact::custom::check::<$term $(<$($argument),+>)?>();)+

            #[::cuda_std::kernel(
                instances = $([$term $(<$($argument),+>)?] x [$element] +)+,
                max_threads = long_rows::MAX_THREADS, min_blocks = 1, dependent_launch
            )]
            pub unsafe fn sum_of_long_rows<O: ExactOperator<T>, T: ::cuda_std::element::Element>(
                args: ExactLongRowArgs<T>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { exact_long_rows::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$term $(<$($argument),+>)?] x [$element] +)+,
                block = rows::BLOCK,
                min_blocks = rows::min_blocks::<O, T>(),
                dependent_launch
            )]
            pub unsafe fn sum_of_rows<O: ExactOperator<T>, T: ::cuda_std::element::Element>(args: ExactRowArgs<T>) {
                // SAFETY: as promised by the caller.
                unsafe { exact_rows::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$term $(<$($argument),+>)?] x [$element] +)+,
                block = columns::BLOCK,
                min_blocks = 2,
                dependent_launch
            )]
            pub unsafe fn sum_of_columns<O: ExactOperator<T>, T: ::cuda_std::element::Element>(
                args: ExactColumnArgs<T>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { exact_columns::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$term $(<$($argument),+>)?] x [$element] +)+,
                block = segments::BLOCK,
                min_blocks = 3,
                dependent_launch
            )]
            pub unsafe fn sum_of_segments<O: ExactOperator<T>, T: ::cuda_std::element::Element>(
                args: ExactSegmentArgs<T>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { exact_segments::<O, T>(args) };
            }

            #[::cuda_std::kernel(
                instances = $([$term $(<$($argument),+>)?] x [$element] +)+,
                block = long_segments::block(size_of::<T>()),
                min_blocks = long_segments::min_blocks::<O, T>(),
                dependent_launch
            )]
            pub unsafe fn sum_of_long_segments<O: ExactOperator<T>, T: ::cuda_std::element::Element>(
                args: ExactLongSegmentArgs<T>,
            ) {
                // SAFETY: as promised by the caller.
                unsafe { exact_long_segments::<O, T>(args) };
            }

            ::cuda_std::on_host! {
                use $crate::reduce::reduction::{ExactHandles, ExactKernels, Kernels, Reduction, ReductionVisitor};

                $(
                    impl Reduction<$element> for $term $(<$($argument),+>)? {
                        type Output = <$term $(<$($argument),+>)? as ExactTerm>::Sum;
                        type State = u64;
                        const KEEPS_ORDER: bool = false;

                        fn kernels(self) -> Kernels<$element, u64, Self::Output> {
                            // SAFETY: `ExactKernels` gives the handles out only by an unsafe call.
                            let handles = unsafe {
                                ExactHandles {
                                    long_rows: sum_of_long_rows::handle::<$term $(<$($argument),+>)?, $element>(),
                                    rows: sum_of_rows::handle::<$term $(<$($argument),+>)?, $element>(),
                                    columns: if <$term $(<$($argument),+>)? as ExactTerm>::LOW.is_some() {
                                        None
                                    } else {
                                        Some(sum_of_columns::handle::<$term $(<$($argument),+>)?, $element>())
                                    },
                                    few_rows: None,
                                    few_columns: None,
                                    segments: sum_of_segments::handle::<$term $(<$($argument),+>)?, $element>(),
                                    long_segments:
                                        sum_of_long_segments::handle::<$term $(<$($argument),+>)?, $element>(),
                                }
                            };
                            // SAFETY: these kernels sum this term, and 0 selects its sum.
                            let kernels = unsafe { ExactKernels::new::<$term $(<$($argument),+>)?>(0, handles) };
                            Kernels::Exact(kernels.with_fields($name, self))
                        }

                        fn visit<V: ReductionVisitor<$element, Self::Output>>(self, visitor: V) -> V::Result {
                            visitor.exact_term(self)
                        }
                    }
                )+
            }
        }
    };
}
