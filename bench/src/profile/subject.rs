//! What can be profiled, by name.

use anyhow::bail;
use warpfold::ladder::{ControlFlowRung, ReduceRung, TransposeRung};
use warpfold::{Buffer, Gpu, Profile};

use crate::data;
use crate::element::{Number, with_ladder_type, with_type};
use crate::ladder::check_matrix;
use crate::measure::Plan;
use crate::memory::{Need, bytes_of};
use crate::options::{FEWER_SIDES, Numbers, Sides, Uses};

/// A kernel, or a library call that launches several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    Reduce(ReduceRung),
    Transpose(TransposeRung),
    ControlFlow(ControlFlowRung),
    /// `Gpu::sum`.
    LibrarySum,
    /// `Gpu::transpose`.
    LibraryTranspose,
}

impl Subject {
    /// All subjects with this name: two ladders have a `vectorized`.
    pub fn named(name: &str) -> anyhow::Result<Vec<Self>> {
        let all = [("sum", Self::LibrarySum), ("transpose", Self::LibraryTranspose)]
            .into_iter()
            .chain(ReduceRung::all().map(|rung| (rung.name(), Self::Reduce(rung))))
            .chain(TransposeRung::ALL.into_iter().map(|rung| (rung.name(), Self::Transpose(rung))))
            .chain(ControlFlowRung::ALL.into_iter().map(|rung| (rung.name(), Self::ControlFlow(rung))));
        let (names, subjects): (Vec<_>, Vec<_>) = all.unzip();
        let found: Vec<_> =
            names.iter().zip(&subjects).filter(|(own, _)| **own == name).map(|(_, &subject)| subject).collect();
        if found.is_empty() {
            let mut distinct: Vec<&str> = Vec::new();
            for own in names {
                if !distinct.contains(&own) {
                    distinct.push(own);
                }
            }
            bail!("there is no kernel `{name}`: choose from {}", distinct.join(", "));
        }
        Ok(found)
    }

    /// Whether the kernels are those of the library, which its users do not change.
    pub fn is_of_library(self) -> bool {
        match self {
            Self::LibrarySum | Self::LibraryTranspose => true,
            Self::Reduce(_) | Self::Transpose(_) | Self::ControlFlow(_) => false,
        }
    }

    /// The sizes that any of them uses.
    pub fn uses(subjects: &[Self]) -> Uses {
        let any = |is_one: fn(&Self) -> bool| subjects.iter().any(is_one);
        let has_sums = any(|subject| matches!(subject, Self::Reduce(_) | Self::LibrarySum));
        Uses {
            numbers: has_sums || any(|subject| matches!(subject, Self::ControlFlow(_))),
            dtype: has_sums,
            block: any(|subject| matches!(subject, Self::Reduce(rung) if !rung.has_fixed_block())),
            sides: any(|subject| matches!(subject, Self::Transpose(_) | Self::LibraryTranspose)),
        }
    }

    /// Runs the subject with counters.
    pub fn profile(self, gpu: &Gpu, plan: &Plan, numbers: &Numbers, sides: &Sides) -> anyhow::Result<Profile> {
        match self {
            Self::LibrarySum => with_type!(numbers.dtype(), T => {
                let input = random::<T>(gpu, numbers)?;
                Ok(gpu.profile(|| gpu.sum(&input).map(|_| ()))?)
            }),
            Self::Reduce(rung) => with_ladder_type!(numbers.dtype(), T => {
                let input = random::<T>(gpu, numbers)?;
                let mut reduction = rung.prepare::<T>(gpu, input.len(), numbers.block())?;
                reduction.load(gpu, &input)?;
                Ok(gpu.profile(|| reduction.start(gpu, &input))?)
            }),
            Self::Transpose(_) | Self::LibraryTranspose => {
                let (rows, columns) = sides.get(gpu);
                let elements = data::random_floats(check_matrix(gpu, plan, rows, columns, FEWER_SIDES)?)?;
                let matrix = gpu.upload(&elements)?.reshape(&[rows, columns])?;
                let mut result = gpu.zeroed(columns * rows)?.reshape(&[columns, rows])?;
                Ok(gpu.profile(|| match self {
                    Self::Transpose(rung) => rung.start(gpu, &matrix, &mut result),
                    _ => gpu.copy_array(matrix.view().permute_axes(&[1, 0])?, &mut result),
                })?)
            }
            Self::ControlFlow(rung) => {
                let n = numbers.n(gpu);
                let need = Need { device: 2 * bytes_of::<u32>(n), host: bytes_of::<u32>(n) };
                need.check(gpu, &format!("control flow over {n} u32"), "choose a smaller --n")?;
                let words = data::random_words(n)?;
                let (input, mut result) = (gpu.upload(&words)?, gpu.zeroed::<u32>(words.len())?);
                Ok(gpu.profile(|| rung.start(gpu, &input, &mut result))?)
            }
        }
    }
}

/// The input of a sum, on the device.
fn random<T: Number>(gpu: &Gpu, numbers: &Numbers) -> anyhow::Result<Buffer<T>> {
    let n = numbers.n(gpu);
    let need = Need { device: 2 * bytes_of::<T>(n), host: bytes_of::<T>(n) };
    need.check(gpu, &format!("a sum of {n} {}", T::TYPE), "choose a smaller --n")?;
    Ok(gpu.upload(&data::random::<T>(n)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_ladders() {
        let vectorized = Subject::named("vectorized").unwrap();
        assert_eq!(
            vectorized,
            [Subject::Reduce(ReduceRung::Vectorized), Subject::Transpose(TransposeRung::Vectorized)]
        );
        assert_eq!(Subject::named("sum").unwrap(), [Subject::LibrarySum]);
        let unknown = Subject::named("nonsense").unwrap_err().to_string();
        assert!(unknown.contains("strided_index"), "{unknown}");
        // Two ladders have it.
        assert_eq!(unknown.matches(" vectorized").count(), 1, "{unknown}");
    }
}
