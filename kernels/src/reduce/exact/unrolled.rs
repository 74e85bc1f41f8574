//! A loop that is always unrolled.

/// Calls a function with each number below `N`, which is at most 32. This is not a loop, because the compiler may leave
/// a loop rolled, and then arrays that its counter indexes are in local memory.
#[inline(always)]
pub fn each<const N: usize>(mut f: impl FnMut(usize)) {
    const { assert!(N <= 32) };
    macro_rules! each {
        ($($k:literal)*) => {$(
            if N > $k {
                f($k);
            }
        )*};
    }
    each!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
}
