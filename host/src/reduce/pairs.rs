//! Reductions of two inputs: the dot product.

use cuda_std::element::Element;
use cuda_std::global::Global;
use half::{bf16, f16};
use kernels::ops::{Dot, PairOperator};
use kernels::reduce::pairs::{self, PACKS_IN_FLIGHT};

use super::plan::Plan;
use super::reducer::{self, check_elements};
use super::shape::Kind;
use super::workspace::Workspace;
use super::{Mailboxes, Output, Shape};
use crate::{AnyBlock, Buffer, Error, Gpu, View, ViewMut};

const OPERATION: &str = "reduce pairs";

/// The parameters of [`pairs`](fn@kernels::reduce::pairs::pairs).
pub type PairsParameters<O, T> =
    (Global<'static, T>, Global<'static, T>, usize, usize, u32, u32, u32, Mailboxes, Output<O, T>);

/// An operator of pairs with its kernel for elements of type `T`.
pub trait PairReduction<T: Element>: PairOperator<T> + Sized {
    /// The kernel for two inputs.
    fn pairs() -> PairKernel<Self, T>;
}

/// The kernel of an operator of pairs. Only the plans of this crate launch it.
pub struct PairKernel<O: PairOperator<T>, T: Element>(AnyBlock<PairsParameters<O, T>>);

// By hand: a derive would ask for `O: Clone`.
impl<O: PairOperator<T>, T: Element> Clone for PairKernel<O, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<O: PairOperator<T>, T: Element> Copy for PairKernel<O, T> {}

macro_rules! dots {
    ($($type:ident)*) => {$(
        impl PairReduction<$type> for Dot {
            fn pairs() -> PairKernel<Self, $type> {
                // SAFETY: whoever has it cannot launch it: only the plans below do, with what they have checked.
                PairKernel(unsafe { pairs::pairs::handle::<Self, $type>() })
            }
        }
    )*};
}

dots!(f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64);

/// A reduction of two inputs of one shape, with all the memory that it needs: starting it allocates nothing and waits for
/// nothing.
///
/// Made by [`Gpu::pair_reducer`].
pub struct PairReducer<O: PairOperator<T>, T: Element> {
    gpu: Gpu,
    kernel: PairKernel<O, T>,
    shape: Shape,
    plan: Plan,
    workspace: Workspace,
}

impl Gpu {
    /// The dot product of two vectors, of nothing 0: of integers in 64 bits, of `f16` and `bf16` in `f32`. See [`Dot`].
    ///
    /// ```
    /// use warpfold::Gpu;
    ///
    /// let gpu = Gpu::first_or_simt()?;
    /// let (x, y) = (gpu.upload(&[1.0_f32, 2.0, 3.0])?, gpu.upload(&[4.0_f32, 5.0, 6.0])?);
    /// assert_eq!(gpu.dot(&x, &y)?, 32.0);
    /// # Ok::<(), warpfold::Error>(())
    /// ```
    ///
    /// # Errors
    /// Their lengths differ; and as [`Gpu::reduce`].
    pub fn dot<'x, 'y, T: Element>(
        &self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
    ) -> Result<<Dot as kernels::ops::Operator<T>>::Output, Error>
    where
        Dot: PairReduction<T>,
    {
        let (x, y) = (x.into(), y.into());
        if x.len() != y.len() {
            let (found, expected) = (y.len(), x.len());
            return Err(Error::Length { operation: "dot", what: "the second input", found, expected });
        }
        let output = self.reduce_pairs(Dot, x, y, Shape::all(x.len()))?;
        Ok(self.download(&output)?[0])
    }

    /// Reduces two inputs of one shape, all of them or row by row, to a buffer of one output for each row.
    ///
    /// # Errors
    /// A view is shorter than the shape, or the shape is one of columns; and as [`Gpu::reduce`].
    pub fn reduce_pairs<'x, 'y, O: PairReduction<T>, T: Element>(
        &self,
        _operator: O,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        let (plan, x, y) = (plan::<O, T>(shape)?, x.into(), y.into());
        check_inputs(self, shape, x, y)?;
        let mut output = self.zeroed(shape.outputs())?;
        let mut workspace = self.workspaces().take(self, plan.room::<O::State>())?;
        start::<O, T>(self, O::pairs(), shape, plan, &mut workspace, (x, y), output.view_mut())?;
        self.workspaces().put_back(workspace);
        Ok(output)
    }

    /// A reduction of two inputs of one shape, with all the memory that it needs, to be started as often as needed.
    ///
    /// # Errors
    /// The shape is one of columns, there are no pairs and the operator has no result for that, or there is no memory for
    /// the workspace.
    pub fn pair_reducer<O: PairReduction<T>, T: Element>(
        &self,
        _operator: O,
        shape: Shape,
    ) -> Result<PairReducer<O, T>, Error> {
        let plan = plan::<O, T>(shape)?;
        let workspace = Workspace::new(self, plan.room::<O::State>())?;
        Ok(PairReducer { gpu: self.clone(), kernel: O::pairs(), shape, plan, workspace })
    }
}

/// The number of spans of a shape of pairs, their length, and how far they are apart, if there are such.
pub(super) fn spans<T: Element>(shape: Shape) -> Result<(usize, usize, usize), Error> {
    check_elements::<T>(shape)?;
    let Kind::Spans { spans, len, pitch } = shape.kind else {
        return Err(Error::Shape {
            operation: OPERATION,
            what: "the number of columns",
            found: shape.outputs(),
            expected: "and pairs are reduced as a whole or row by row, not by columns".to_owned(),
        });
    };
    Ok((spans, len, pitch))
}

/// How a shape of pairs is reduced by an operator, if it can be.
fn plan<O: PairOperator<T>, T: Element>(shape: Shape) -> Result<Plan, Error> {
    let (spans, len, pitch) = spans::<T>(shape)?;
    if len == 0 && spans > 0 && !O::HAS_EMPTY {
        return Err(Error::Empty { operator: "a reduction of pairs" });
    }
    Ok(Plan::of_spans(spans, len, pitch, size_of::<T>(), PACKS_IN_FLIGHT))
}

impl<O: PairOperator<T>, T: Element> PairReducer<O, T> {
    /// What it reduces to what.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Starts the reduction of the two inputs into `output`, behind all work that was started before.
    ///
    /// # Errors
    /// An input is shorter than the shape (what is behind that is left alone), `output` has not as many elements as the shape has
    /// outputs, or one of them is another device's; the launch is refused.
    pub fn start<'x, 'y, 'o>(
        &mut self,
        x: impl Into<View<'x, T>>,
        y: impl Into<View<'y, T>>,
        output: impl Into<ViewMut<'o, O::Output>>,
    ) -> Result<(), Error> {
        let Self { gpu, kernel, shape, plan, workspace } = self;
        start::<O, T>(gpu, *kernel, *shape, *plan, workspace, (x.into(), y.into()), output.into())
    }
}

/// Whether both inputs are this device's and as long as the shape: to be asked before there is memory for the outputs.
pub(super) fn check_inputs<T: Element>(gpu: &Gpu, shape: Shape, x: View<'_, T>, y: View<'_, T>) -> Result<(), Error> {
    let expected = shape.elements().unwrap_or(usize::MAX);
    for (what, input) in [("the first input", x), ("the second input", y)] {
        gpu.own(input.memory(), OPERATION)?;
        if let Some((rows, columns)) = input.matrix() {
            shape.check_matrix(OPERATION, rows, columns)?;
        }
        if input.len() < expected {
            return Err(Error::Length { operation: OPERATION, what, found: input.len(), expected });
        }
    }
    Ok(())
}

/// Starts a reduction that has been planned, in a workspace that has the plan's room.
fn start<O: PairOperator<T>, T: Element>(
    gpu: &Gpu,
    kernel: PairKernel<O, T>,
    shape: Shape,
    plan: Plan,
    workspace: &mut Workspace,
    (x, y): (View<'_, T>, View<'_, T>),
    output: ViewMut<'_, O::Output>,
) -> Result<(), Error> {
    check_inputs(gpu, shape, x, y)?;
    gpu.own(output.memory(), OPERATION)?;
    if output.len() != shape.outputs() {
        let (found, expected) = (output.len(), shape.outputs());
        return Err(Error::Length { operation: OPERATION, what: "the output", found, expected });
    }
    let Plan::Spans { len, pitch, parts, tiles, longer, threads, .. } = plan else { return Ok(()) };
    let grid = reducer::grid(plan, OPERATION)?;
    let arguments = (x, y, len, pitch, parts, tiles, longer, workspace.mailboxes.view_mut(), output);
    gpu.launch(kernel.0.with_block(threads), grid, arguments)
}
