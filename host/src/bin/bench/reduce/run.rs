//! One measurement, for an operator and a type that are chosen at run time.

use half::{bf16, f16};
use warpfold::ops::{All, Any, ArgMax, ArgMin, CountNonzero, Max, Mean, Min, MinMax, Norm, Sum, SumOfSquares};
use warpfold::{Element, Error, Gpu, Reduction};

use super::cases::{Case, ElementType, Operator, name_of};
use super::data::{Small, expected, first_wrong, numbers};
use super::peers::Peers;
use super::table::Row;
use crate::measure::Plan;

/// A number that a reduction gives out; of two the first.
trait Given {
    fn to_f64(&self) -> f64;
}

macro_rules! given {
    ($($type:ident $to:expr;)*) => {$(
        impl Given for $type {
            fn to_f64(&self) -> f64 {
                ($to)(*self)
            }
        }
        impl Given for [$type; 2] {
            fn to_f64(&self) -> f64 {
                ($to)(self[0])
            }
        }
    )*};
}

given! {
    f16 f64::from; bf16 f64::from; f32 f64::from; f64 |x| x;
    i8 f64::from; u8 f64::from; i16 f64::from; u16 f64::from; i32 f64::from; u32 f64::from;
    i64 |x| x as f64; u64 |x| x as f64;
}

/// Measures a case.
pub fn run(gpu: &Gpu, plan: &Plan, peers: &mut Peers, case: &Case) -> anyhow::Result<Row> {
    macro_rules! of_type {
        ($operator:ident, $($dtype:ident $type:ident),*) => {
            match case.dtype {
                $(ElementType::$dtype => measure::<$operator, $type>(gpu, plan, peers, case),)*
            }
        };
    }
    macro_rules! of_operator {
        ($($name:ident $operator:ident),*) => {
            match case.operator {
                $(Operator::$name => of_type!(
                    $operator, F32 f32, F64 f64, F16 f16, Bf16 bf16, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16,
                    U32 u32, U64 u64
                ),)*
            }
        };
    }
    of_operator!(
        Sum Sum, Min Min, Max Max, Argmin ArgMin, Argmax ArgMax, MinMax MinMax, Mean Mean, SumOfSquares SumOfSquares,
        Norm Norm, Any Any, All All, CountNonzero CountNonzero
    )
}

fn measure<O: Reduction<T> + Default, T: Element + Small>(
    gpu: &Gpu,
    plan: &Plan,
    peers: &mut Peers,
    case: &Case,
) -> anyhow::Result<Row>
where
    O::Output: Given,
{
    let Case { extent, offset, .. } = *case;
    let len = extent.elements();
    let bytes = len * size_of::<T>();
    let mut all: Vec<T> = vec![T::from_small(19); offset];
    all.extend(numbers::<T>(len));
    let first = gpu.upload(&all)?;
    let mut inputs = vec![first];
    for _ in 1..plan.rotation(bytes) {
        let mut copy = gpu.zeroed(all.len())?;
        gpu.copy(&inputs[0], &mut copy)?;
        inputs.push(copy);
    }
    let expected = expected(case.operator, &extent, &all[offset..]);
    drop(all);
    let mut output = gpu.zeroed::<O::Output>(extent.shape().outputs())?;
    let mut reducer = gpu.reducer(O::default(), extent.shape())?;
    let mut start = |i: usize| {
        let input = inputs[i % inputs.len()].view().slice(offset, len)?;
        reducer.start(input, &mut output)
    };

    let _range = plan.range(&format!("{} of {}", name_of(&case.operator), name_of(&case.dtype)));
    let first = plan.first(gpu, || start(0))?;
    let (back_to_back, alone) = match first {
        // In the executor the one time is as good as any.
        Some(_) => (plan.time_after(gpu, first, &mut start)?, None),
        None => (plan.time_recorded(gpu, &mut start)?, Some(plan.time_alone(gpu, &mut start)?)),
    };
    let wrong = first_wrong(gpu.download(&output)?.iter().map(Given::to_f64), &expected);

    let addresses = inputs
        .iter()
        .map(|input| Ok(input.view().slice(offset, len)?.device_address()))
        .collect::<Result<Vec<_>, Error>>()?;
    let cub = peers.cub(gpu, plan, case, &addresses)?;
    drop(inputs);
    let pytorch = peers.pytorch(case)?;
    Ok(Row::new(case, bytes, wrong, (back_to_back, alone), cub, pytorch))
}
