//! The driver functions that `cust` links against: each is a jump through a table.
//!
//! All of them are in one `global_asm!`, and so in one object of this crate's archive. A linker
//! that reads archives once and in order then finds all or none of them, and [`KEEP`] sees to all.
//!
//! The symbols are hidden: the rest of the program or library that links this crate sees them, the
//! dynamic linker does not. So the driver's calls to its own functions never end up here, and two
//! libraries of one process can each have their own trampolines.
//!
//! A port to another machine is one more `trampoline_macro!`. It must leave every argument register
//! and the stack as they are.

use std::arch::global_asm;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::stub;
use crate::symbols::with_driver_functions;

/// The address of a function, whatever its type.
pub(crate) type Address = *mut ();

/// Where each trampoline jumps to; in the order of [`NAMES`].
static TABLE: [AtomicPtr<()>; NAMES.len()] = {
    let mut table = [const { AtomicPtr::new(stub::stub_library as Address) }; NAMES.len()];
    table[slot("cuGetErrorString")] = AtomicPtr::new(stub::get_error_string as Address);
    table
};

/// Points every trampoline at the address that `resolve` gives for its name, or at a function that
/// returns `CUDA_ERROR_NOT_FOUND` (500) where it gives none.
///
/// # Safety
///
/// Each address is that of the driver function of that name, and stays valid until the process
/// ends.
pub(crate) unsafe fn connect(resolve: impl Fn(&str) -> Option<Address>) {
    for (name, entry) in NAMES.iter().zip(&TABLE) {
        let address = resolve(name).unwrap_or(stub::not_found as Address);
        // Release, so that a thread that jumps to the address also sees the loaded library.
        entry.store(address, Ordering::Release);
    }
}

/// Whether `address` is one of the trampolines of this crate.
pub(crate) fn contains(address: Address) -> bool {
    let start = cuda_driver_trampolines_start as *const () as usize;
    let end = cuda_driver_trampolines_end as *const () as usize;
    (start..end).contains(&address.addr())
}

/// The slot of a function; fails to compile, when used in a constant, if there is none.
const fn slot(name: &str) -> usize {
    let mut slot = 0;
    while !same(NAMES[slot], name) {
        slot += 1;
    }
    slot
}

/// `a == b`, which a `const fn` cannot say.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

unsafe extern "C" {
    // Where the trampolines lie. These are labels, not functions: never called.
    fn cuda_driver_trampolines_start();
    fn cuda_driver_trampolines_end();
}

/// Makes the linker take the trampolines' object from the archive even before it meets a call to
/// one of them: `cust`'s archive may come later on its command line.
#[used]
static KEEP: unsafe extern "C" fn() = cuda_driver_trampolines_start;

/// Needs no register: the jump itself reads the table. On x86-64 every load is an acquire.
#[cfg(target_arch = "x86_64")]
macro_rules! trampoline_jump {
    () => {
        "jmp qword ptr [rip + {table} + cuda_driver_offset]"
    };
}

/// `x16` is the register that the calling convention sets aside for code between a call and its
/// target. `ldar` is the acquire that pairs with the store in [`connect`].
#[cfg(target_arch = "aarch64")]
macro_rules! trampoline_jump {
    () => {
        "adrp x16, {table} + cuda_driver_offset
         add x16, x16, :lo12:{table} + cuda_driver_offset
         ldar x16, [x16]
         br x16"
    };
}

macro_rules! define_trampolines {
    ($($name:ident)*) => {
        /// The names of the driver functions, sorted.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        global_asm!(
            ".pushsection .text.cuda_driver, \"ax\", %progbits",
            ".macro cuda_driver_symbol name",
            ".globl \\name",
            ".hidden \\name",
            ".type \\name, %function",
            "\\name:",
            ".endm",
            ".macro cuda_driver_trampoline name",
            ".p2align 3",
            "cuda_driver_symbol \\name",
            trampoline_jump!(),
            ".size \\name, . - \\name",
            ".set cuda_driver_offset, cuda_driver_offset + 8",
            ".endm",
            ".set cuda_driver_offset, 0",
            "cuda_driver_symbol cuda_driver_trampolines_start",
            $(concat!("cuda_driver_trampoline ", stringify!($name)),)*
            "cuda_driver_symbol cuda_driver_trampolines_end",
            ".purgem cuda_driver_trampoline",
            ".purgem cuda_driver_symbol",
            ".popsection",
            table = sym TABLE,
        );
    };
}

with_driver_functions!(define_trampolines);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(NAMES.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn the_linker_keeps_every_trampoline() {
        let start = cuda_driver_trampolines_start as *const () as usize;
        let end = cuda_driver_trampolines_end as *const () as usize;
        let shortest_jump = 6;
        assert!(end - start >= NAMES.len() * shortest_jump);
    }

    #[test]
    fn tells_trampolines_from_other_functions() {
        assert!(contains(cuda_driver_trampolines_start as Address));
        assert!(!contains(cuda_driver_trampolines_end as Address));
        assert!(!contains(stub::stub_library as Address));
    }
}
