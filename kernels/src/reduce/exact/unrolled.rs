//! A loop that is always unrolled.

/// Calls a function with each number below `N`, which is at most 16. Not a loop: the compiler may not unroll it, and
/// then what its counter indexes lies in local memory.
#[inline(always)]
pub fn each<const N: usize>(mut with: impl FnMut(usize)) {
    const { assert!(N <= 16) };
    macro_rules! each {
        ($($k:literal)*) => {$(
            if N > $k {
                with($k);
            }
        )*};
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
}
