//! Branches and loops: one kernel for each nesting that Rust-CUDA compiles.

use cuda_std::prelude::*;

/// Kernels that write a function of each element.
macro_rules! of_each {
    ($($(#[$doc:meta])* fn $name:ident($x:ident) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `output` has as many elements as `input`.
        #[kernel]
        pub unsafe fn $name(input: &[i32], output: *mut i32) {
            fn of($x: i32) -> i32 $body

            let i = thread::index_1d() as usize;
            if i < input.len() {
                // SAFETY: as promised by the launch; no other thread has this index.
                unsafe { *output.add(i) = of(input[i]) };
            }
        }
    )*};
}

/// A custom iterator over the numbers from a start to an end.
struct Upwards {
    next: i32,
    end: i32,
}

impl Iterator for Upwards {
    type Item = i32;

    fn next(&mut self) -> Option<i32> {
        let own = self.next;
        self.next += 1;
        (own < self.end).then_some(own)
    }
}

of_each! {
    /// 1 for a positive number, else 0.
    fn if_(x) {
        let mut y = 0;
        if x > 0 {
            y = 1;
        }
        y
    }
    /// 1 for a positive number, else 2.
    fn if_else(x) {
        if x > 0 { 1 } else { 2 }
    }
    /// The sign, as 1, 2 or 3.
    fn if_else_if_else(x) {
        if x > 0 {
            1
        } else if x == 0 {
            2
        } else {
            3
        }
    }
    /// 1 for a positive even number.
    #[allow(clippy::collapsible_if)]
    fn if_if(x) {
        let mut y = 0;
        if x > 0 {
            if x % 2 == 0 {
                y = 1;
            }
        }
        y
    }
    /// Returns from the first branch.
    #[allow(clippy::needless_late_init)]
    fn if_return_else(x) {
        let y;
        if x > 0 {
            return x;
        } else {
            y = -x;
        }
        y + 1
    }
    /// Returns from both branches.
    #[allow(clippy::needless_return)]
    fn if_return_else_return(x) {
        if x > 0 {
            return x + 2;
        } else {
            return x - 2;
        }
    }
    /// A loop in a branch: the sum below a positive number.
    fn if_while(x) {
        let (mut i, mut sum) = (0, 0);
        if x > 0 {
            while i < x {
                sum += i;
                i += 1;
            }
        }
        sum
    }
    /// Two branches, one after the other.
    fn ifx2(x) {
        let mut y = 0;
        if x > 10 {
            y += 1;
        }
        if x > 20 {
            y += 2;
        }
        y
    }
    /// An endless loop with a break: the highest power of two that is at most the number's absolute value plus 1.
    fn loop_(x) {
        let mut power = 1;
        loop {
            if power * 2 > x.abs() + 1 {
                break power;
            }
            power *= 2;
        }
    }
    /// The number of halvings until 0.
    fn while_(x) {
        let (mut rest, mut count) = (x.abs(), 0);
        while rest > 0 {
            rest /= 2;
            count += 1;
        }
        count
    }
    /// A loop that runs once.
    #[allow(clippy::never_loop)]
    fn while_break(x) {
        let mut y = 0;
        while x > y {
            y += 5;
            break;
        }
        y
    }
    /// A loop whose end is never reached.
    #[allow(clippy::needless_continue)]
    fn while_continue(x) {
        let mut y = 0;
        while y < x {
            y += 1;
            continue;
        }
        y
    }
    /// The first multiple of 7 that is at least the number.
    fn while_if_break(x) {
        let mut y = x;
        while y < x + 100 {
            if y % 7 == 0 {
                break;
            }
            y += 1;
        }
        y
    }
    /// Both branches break.
    #[allow(clippy::never_loop)]
    fn while_if_break_else_break(x) {
        let mut y = 0;
        while y < 3 {
            if x > 0 {
                y = x;
                break;
            } else {
                y = 1 - x;
                break;
            }
        }
        y
    }
    /// Two branches that break: the first multiple of 5 or 7.
    fn while_if_break_if_break(x) {
        let mut y = x;
        while y < x + 100 {
            if y % 5 == 0 {
                break;
            }
            if y % 7 == 0 {
                break;
            }
            y += 1;
        }
        y
    }
    /// The count of multiples of the absolute value plus 1, up to 20.
    fn while_if_continue(x) {
        let (mut i, mut count) = (0, 0);
        while i < 20 {
            i += 1;
            if i % (x.abs() + 1) != 0 {
                continue;
            }
            count += 1;
        }
        count
    }
    /// Both branches continue.
    #[allow(clippy::needless_continue)]
    fn while_if_continue_else_continue(x) {
        let (mut i, mut sum) = (0, 0);
        while i < 10 {
            i += 1;
            if i % 2 == 0 {
                sum += x;
                continue;
            } else {
                sum -= 1;
                continue;
            }
        }
        sum
    }
    /// Returns out of the loop.
    fn while_return(x) {
        let mut y = 0;
        while y < 50 {
            if y * y > x {
                return y;
            }
            y += 1;
        }
        -1
    }
    /// A loop in a loop: the number of pairs below the number.
    fn while_while(x) {
        let (mut i, mut count) = (0, 0);
        while i < x {
            let mut j = 0;
            while j < i {
                count += 1;
                j += 1;
            }
            i += 1;
        }
        count
    }
    /// The inner loop runs once.
    #[allow(clippy::never_loop)]
    fn while_while_break(x) {
        let (mut i, mut sum) = (0, 0);
        while i < 8 {
            while sum < x {
                sum += 3;
                break;
            }
            i += 1;
        }
        sum
    }
    /// The inner loop's end is never reached.
    #[allow(clippy::needless_continue)]
    fn while_while_continue(x) {
        let (mut i, mut sum) = (0, 0);
        while i < 4 {
            let mut j = 0;
            while j < x {
                j += 1;
                sum += i;
                continue;
            }
            i += 1;
        }
        sum
    }
    /// The inner loop ends early.
    fn while_while_if_break(x) {
        let (mut i, mut count) = (0, 0);
        while i < 6 {
            let mut j = 0;
            while j < 10 {
                if j == x {
                    break;
                }
                count += 1;
                j += 1;
            }
            i += 1;
        }
        count
    }
    /// The inner loop skips a number.
    fn while_while_if_continue(x) {
        let (mut i, mut count) = (0, 0);
        while i < 6 {
            let mut j = 0;
            while j < 10 {
                j += 1;
                if j == x {
                    continue;
                }
                count += 1;
            }
            i += 1;
        }
        count
    }
    /// The sum of a range.
    fn for_range(x) {
        let mut sum = 0_u32;
        for i in 0..x.unsigned_abs() {
            sum += i;
        }
        sum as i32
    }
    /// The sum of a range that begins below 0.
    fn for_range_signed(x) {
        let mut sum = 0;
        for i in -5..x {
            sum += i;
        }
        sum
    }
    /// The sum over a custom iterator.
    fn for_with_custom_range_iter(x) {
        let mut sum = 0;
        for i in (Upwards { next: 3, end: x }) {
            sum += i;
        }
        sum
    }
}
