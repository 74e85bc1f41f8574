//! `#[kernel]`: makes a function an entry of the PTX module, and gives the host a typed handle of it.

use proc_macro::TokenStream;

mod expand;
mod instances;
mod parameters;

/// Makes a function at module scope a kernel.
///
/// A plain function is one entry, of its own name, and its block is the launch's choice:
///
/// ```ignore
/// #[kernel]
/// pub unsafe fn vecadd(a: &[f32], b: &[f32], c: *mut f32) { ... }
///
/// vecadd::handle()                      // on the host; `unsafe`, as the kernel is
/// ```
///
/// A generic function lists its instances: one list for each generic parameter, in order. Each combination is an entry,
/// named after the function and its arguments (`sum_f32_256`). With `block`, an expression or up to three in brackets,
/// the instance's block is fixed:
///
/// ```ignore
/// #[kernel(instances = [f32, i32] x [64, 128, 256], block = BLOCK)]
/// pub fn sum<T: Element, const BLOCK: usize>(input: Global<T>, partials: GlobalMut<T>) { ... }
///
/// sum::handle::<f32, 256>()             // on the host; `sum::handle::<f32, 100>()` does not compile
/// ```
///
/// Products of lists are joined by `+`, where not every type goes with every other: `instances = [Sum] x [f32, i32] +
/// [CountNan] x [f32]`. A kernel without a `block` of its own may say how many threads one has at most, by
/// `max_threads = 1024`, so that the assembler leaves each thread no more registers than such a block has.
///
/// With `min_blocks = 4`, too, it leaves them no more than so many blocks in one multiprocessor have. What does not fit
/// goes to memory.
///
/// With `early`, the kernel's blocks may take their places while the kernel before it in the same order still runs,
/// where the device can (sm_90 and later): each waits, before anything of its own, until that one is done and all it
/// wrote can be seen. Between short kernels that saves most of the time that a launch takes. If it lets the next grid
/// in as well, and its own has few blocks across, it looks at some of its parameters before it waits, which
/// `cuda_builder` sees to.
///
/// With `erase = path`, the CPU's code of a kernel over an operator and an element is one function for all instances
/// with the same sizes of element, state and output, which calls the operator's functions from a table. The path names
/// a type with two parameters, state and output, that is an operator for any of them and implements
/// `cuda_std::erase::Erase`.
///
/// Parameters are scalars, pointers, slices, `Global` and `GlobalMut`. A kernel that is an `unsafe fn` has an unsafe
/// `handle`: who takes it promises that every launch keeps the kernel's contract. A safe one, which can reach memory
/// through views only, has a safe one.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(attribute)
        .and_then(|attribute| Ok((attribute, syn::parse(item)?)))
        .and_then(|(attribute, function)| expand::kernel(&attribute, &function));
    match expanded {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
