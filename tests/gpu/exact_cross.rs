//! The full cross of exact sums: see `test_support::exact_cross`.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use test_support::exact_cross::{self, Crossed, KINDS, SHORT, Tally, extents};

use crate::{Test, is_sanitized};

/// The trials of one type: one for each kind of data, because the references take most of the time, and trials run side
/// by side.
pub fn trials<T: Crossed>() -> Vec<(String, Test)> {
    let examples: Test = Box::new(|gpu| {
        let mut tally = Tally::default();
        exact_cross::examples::<T>(gpu, &mut tally)?;
        tally.checked()?;
        Ok(())
    });
    let mut trials = vec![(format!("every exact sum of {}: examples", T::NAME), examples)];
    for kind in KINDS {
        let check: Test = Box::new(move |gpu| {
            let (mut source, mut tally) = (SmallRng::from_os_rng(), Tally::default());
            for extent in if is_sanitized() { SHORT.to_vec() } else { extents() } {
                exact_cross::check::<T>(gpu, kind, extent, source.random(), &mut tally)?;
            }
            tally.checked()?;
            Ok(())
        });
        trials.push((format!("every exact sum of {}: {kind:?}", T::NAME), check));
    }
    trials
}
