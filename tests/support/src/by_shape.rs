//! Reducers and additions of shapes, for the many tests of rows and columns of a buffer.

use warpfold::{
    ArrayView, Buffer, Element, Error, ExactElement, ExactSums, Gpu, Layout, Plain, Reducer, Reduction, Shape, View,
    ViewMut,
};

/// Reduces by shapes.
pub trait ByShape {
    /// Reduces a buffer or a view that begins with the elements of a shape.
    ///
    /// # Errors
    /// As for [`Gpu::reduce`]; or the view is too short.
    fn reduce_to_buffer<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error>;

    /// A reducer of buffers that begin with the elements of a shape.
    ///
    /// # Errors
    /// As for [`Gpu::reducer`].
    fn reducer_of<O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        shape: Shape,
    ) -> Result<ReducerOfShape<T, O::Output>, Error>;
}

impl ByShape for Gpu {
    fn reduce_to_buffer<'a, O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        input: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        let (layout, axes) = shape.array()?;
        Ok(self.reduce(operator, ArrayView::new(input.into(), &layout)?, axes)?.into_buffer())
    }

    fn reducer_of<O: Reduction<T>, T: Element>(
        &self,
        operator: O,
        shape: Shape,
    ) -> Result<ReducerOfShape<T, O::Output>, Error> {
        let (layout, axes) = shape.array()?;
        Ok(ReducerOfShape { reducer: self.reducer(operator, &layout, axes)?, layout })
    }
}

/// A [`Reducer`] of the elements with which a buffer begins.
pub struct ReducerOfShape<T: Element, R: Plain> {
    reducer: Reducer<T, R>,
    layout: Layout,
}

impl<T: Element, R: Plain> ReducerOfShape<T, R> {
    /// [`Reducer::start`].
    ///
    /// # Errors
    /// As there; or the input is too short.
    pub fn start<'i, 'o>(
        &mut self,
        input: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, R>>,
    ) -> Result<(), Error> {
        self.reducer.start(ArrayView::new(input.into(), &self.layout)?, output.into())
    }
}

/// Adds rows and columns to exact sums.
pub trait AddByShape<T> {
    /// [`ExactSums::add`] of the elements of a shape, with which a view begins.
    ///
    /// # Errors
    /// As there; or the view is too short.
    fn add_shape<'a>(&mut self, input: impl Into<View<'a, T>>, shape: Shape) -> Result<(), Error>
    where
        T: 'a;
}

impl<T: ExactElement> AddByShape<T> for ExactSums<T> {
    fn add_shape<'a>(&mut self, input: impl Into<View<'a, T>>, shape: Shape) -> Result<(), Error>
    where
        T: 'a,
    {
        let (layout, axes) = shape.array()?;
        self.add(ArrayView::new(input.into(), &layout)?, axes)
    }
}
