//! Operators of one input or two.

use cuda_std::element::{Element, Plain};
use half::{bf16, f16};
use kernels::ops::{Dot, InElementType};
use kernels::reduce::reduction::{Kernels, Reduction};

use super::OPERATION;
use super::axes::{Axes, Reduced};
use super::geometry::{Allowed, Geometry, Kind, Order, Pairs};
use super::launch::{ByPairs, ByStates, Exact, HasPairKernel};
use super::plan::Plan;
use super::private::Token;
use crate::array::broadcast;
use crate::{Error, Gpu, Layout, host};

/// An operator that reduces `N` inputs of elements of type `T`: one, or two of which the elements at the same indices
/// form pairs.
///
/// Each [`Reduction`] is an operator of one input. [`Dot`] is one of two inputs.
///
/// Sealed: only this crate implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not reduce {N} inputs of type `{T}`",
    note = "`Dot` takes two inputs, as a pair: `gpu.reduce(Dot, (&x, &y), axes)`; all other operators take one",
    note = "the table of `warpfold::ops` has the element types of each built-in operator",
    note = "a custom operator needs kernels: list it in `kernels::reductions!`"
)]
pub trait Reduces<T: Element, const N: usize>: Sized {
    /// The type of each output.
    type Output: Plain;
    /// The reduction of arrays of these layouts.
    #[doc(hidden)]
    fn plan(self, gpu: &Gpu, layouts: [&Layout; N], axes: Axes, _: Token) -> Result<Plan<T, Self::Output, N>, Error>;
    /// Writes the results of a reduction of arrays in host memory.
    #[doc(hidden)]
    fn reduce_on_host(
        self,
        reduction: &host::Reduction<'_, T, N>,
        output: &mut [Self::Output],
        _: Token,
    ) -> Result<(), Error>;
}

impl<O: Reduction<T>, T: Element> Reduces<T, 1> for O {
    type Output = <O as Reduction<T>>::Output;

    fn plan(self, gpu: &Gpu, [layout]: [&Layout; 1], axes: Axes, _: Token) -> Result<Plan<T, Self::Output, 1>, Error> {
        let (kernels, reduced) = (self.kernels(), axes.of(layout)?);
        let geometry = Geometry::<1, Kind>::new(layout, &reduced, allowed(&kernels, layout, &reduced)?)?;
        let (kind, multiprocessors) = (geometry.kind, gpu.multiprocessors());
        let launches = match kernels {
            Kernels::OfStates(kernels) => ByStates::plan(kernels, kind, multiprocessors)?,
            Kernels::Exact(kernels) => Exact::plan(kernels, kind, multiprocessors, gpu.has_fast_f64())?,
        };
        Plan::new(&geometry, launches, &reduced.output_extents(layout))
    }

    fn reduce_on_host(
        self,
        reduction: &host::Reduction<'_, T, 1>,
        output: &mut [Self::Output],
        _: Token,
    ) -> Result<(), Error> {
        if !O::KEEPS_ORDER {
            return self.visit(host::Visitor { reduction, output });
        }
        #[cfg(feature = "simt")]
        return host::reduce_in_order(self, reduction, output);
        #[cfg(not(feature = "simt"))]
        Err(Error::OrderOfKernels)
    }
}

macro_rules! of_pairs {
    ($($operator:ty: { $($type:ident to $output:ty;)* })*) => {$($(
        impl Reduces<$type, 2> for $operator {
            type Output = $output;

            fn plan(
                self,
                gpu: &Gpu,
                layouts: [&Layout; 2],
                axes: Axes,
                _: Token,
            ) -> Result<Plan<$type, Self::Output, 2>, Error> {
                plan_of_pairs::<Self, _, _>(gpu, layouts, axes)
            }

            fn reduce_on_host(
                self,
                reduction: &host::Reduction<'_, $type, 2>,
                output: &mut [$output],
                _: Token,
            ) -> Result<(), Error> {
                host::OfPairs::reduce(reduction, output);
                Ok(())
            }
        }
    )*)*};
}

of_pairs! {
    Dot: {
        i8 to i64; i16 to i64; i32 to i64; i64 to i64; u8 to u64; u16 to u64; u32 to u64; u64 to u64;
        f16 to f32; bf16 to f32; f32 to f32; f64 to f64;
    }
    InElementType<Dot>: { f16 to f16; bf16 to bf16; }
}

fn plan_of_pairs<O: HasPairKernel<T, R>, T: Element, R: Plain>(
    gpu: &Gpu,
    layouts: [&Layout; 2],
    axes: Axes,
) -> Result<Plan<T, R, 2>, Error> {
    let [first, second] = broadcast(OPERATION, layouts)?;
    let reduced = axes.of(&first)?;
    let allowed = Allowed { order: Order::Any, columns: false, in_place: false, size: size_of::<T>() };
    let geometry = Geometry::<2, Pairs>::of_pairs([&first, &second], &reduced, allowed)?;
    let launches = ByPairs::plan(O::kernel(), geometry.kind, gpu.multiprocessors())?;
    Plan::new(&geometry, launches, &reduced.output_extents(&first))
}

/// What the operator's kernels allow for axes of a layout.
fn allowed<T: Element, S: Plain, R: Plain>(
    kernels: &Kernels<T, S, R>,
    layout: &Layout,
    reduced: &Reduced,
) -> Result<Allowed, Error> {
    let size = size_of::<T>();
    match kernels {
        Kernels::Exact(kernels) => {
            Ok(Allowed { order: Order::Any, columns: kernels.has_columns(), in_place: false, size })
        }
        Kernels::OfStates(kernels) => {
            let (rank, found) = (layout.rank(), reduced.count(layout.rank()));
            if kernels.uses_index() && found != 1 && found != rank {
                return Err(Error::IndexOverAxes { operator: kernels.name(), found, rank });
            }
            let is_any = kernels.is_any_order() && !kernels.uses_index();
            let order = if is_any { Order::Any } else { Order::OfView };
            Ok(Allowed { order, columns: true, in_place: false, size })
        }
    }
}
