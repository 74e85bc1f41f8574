//! Which way an operator is computed on the host.

use cuda_std::element::{Element, Plain};
use exact_sum::{Rounded, Summand};
use kernels::ops::Operator;
use kernels::reduce::exact::custom::ExactTerm;
use kernels::reduce::reduction::{ExactSumOf, ReductionVisitor};

use super::Reduction;
use super::exact::{Exact, OfElements, OfSquares};
use super::states::ByStates;
use super::terms::ByTerm;
use crate::Error;

/// Writes the results of a reduction.
pub(crate) struct Visitor<'r, 'a, T, R> {
    pub reduction: &'r Reduction<'a, T, 1>,
    pub output: &'r mut [R],
}

impl<T: Element, R: Plain> ReductionVisitor<T, R> for Visitor<'_, '_, T, R> {
    type Result = Result<(), Error>;

    fn operator<O: Operator<U>, U: Element>(self, name: &'static str, operator: O) -> Result<(), Error> {
        let (rank, found) = (self.reduction.layout().rank(), self.reduction.axes_reduced());
        if O::USES_INDEX && found != 1 && found != rank {
            return Err(Error::IndexOverAxes { operator: name, found, rank });
        }
        if !O::HAS_EMPTY_RESULT && self.reduction.count() == 0 && !self.output.is_empty() {
            return Err(Error::Empty { operator: name });
        }
        self.reduction.cast::<U>().run(&ByStates::new(operator), bytemuck::cast_slice_mut(self.output));
        Ok(())
    }

    fn exact_sum(self, sum: ExactSumOf) -> Result<(), Error>
    where
        T: Summand,
        R: Rounded,
    {
        match sum {
            ExactSumOf::Elements => self.reduction.run(&Exact(OfElements::new(false)), self.output),
            ExactSumOf::Mean => self.reduction.run(&Exact(OfElements::new(true)), self.output),
            ExactSumOf::Squares => self.reduction.run(&Exact(OfSquares::new(false)), self.output),
            ExactSumOf::Norm => self.reduction.run(&Exact(OfSquares::new(true)), self.output),
        }
        Ok(())
    }

    fn exact_term<E: ExactTerm<Element = T, Sum = R>>(self, term: E) -> Result<(), Error>
    where
        R: Rounded,
    {
        self.reduction.run(&ByTerm::new(term), self.output);
        Ok(())
    }
}
