//! Reducers and additions of shapes, for the many tests of rows and columns of a buffer.

use warpfold::ops::Dot;
use warpfold::{
    ArrayView, Buffer, Element, Error, ExactElement, ExactSums, Gpu, Layout, Plain, Reducer, Reduces, Reduction, View,
    ViewMut,
};

use crate::shape::Shape;

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

    /// Reduces the pairs of two views that begin with the elements of a shape.
    ///
    /// # Errors
    /// As for [`Gpu::reduce`]; or a view is too short.
    fn reduce_pairs<'a, O: Reduces<T, 2>, T: Element>(
        &self,
        operator: O,
        x: impl Into<View<'a, T>>,
        y: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error>;

    /// A reducer of dot products of pairs of buffers that begin with the elements of a shape.
    ///
    /// # Errors
    /// As for [`Gpu::reducer`].
    fn dots_of<T: Element>(&self, shape: Shape) -> Result<DotsOfShape<T, <Dot as Reduces<T, 2>>::Output>, Error>
    where
        Dot: Reduces<T, 2>;
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

    fn reduce_pairs<'a, O: Reduces<T, 2>, T: Element>(
        &self,
        operator: O,
        x: impl Into<View<'a, T>>,
        y: impl Into<View<'a, T>>,
        shape: Shape,
    ) -> Result<Buffer<O::Output>, Error> {
        let (layout, axes) = shape.array()?;
        let (x, y) = (ArrayView::new(x.into(), &layout)?, ArrayView::new(y.into(), &layout)?);
        Ok(self.reduce(operator, (x, y), axes)?.into_buffer())
    }

    fn dots_of<T: Element>(&self, shape: Shape) -> Result<DotsOfShape<T, <Dot as Reduces<T, 2>>::Output>, Error>
    where
        Dot: Reduces<T, 2>,
    {
        let (layout, axes) = shape.array()?;
        Ok(DotsOfShape { reducer: self.reducer(Dot, (&layout, &layout), axes)?, layout })
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

/// A [`Reducer`] of the pairs with which two buffers begin.
pub struct DotsOfShape<T: Element, R: Plain> {
    reducer: Reducer<T, R, 2>,
    layout: Layout,
}

impl<T: Element, R: Plain> DotsOfShape<T, R> {
    /// [`Reducer::start`].
    ///
    /// # Errors
    /// As there; or an input is too short.
    pub fn start<'i, 'o>(
        &mut self,
        x: impl Into<View<'i, T>>,
        y: impl Into<View<'i, T>>,
        output: impl Into<ViewMut<'o, R>>,
    ) -> Result<(), Error> {
        let inputs = (ArrayView::new(x.into(), &self.layout)?, ArrayView::new(y.into(), &self.layout)?);
        self.reducer.start(inputs, output.into())
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
