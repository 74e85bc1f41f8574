//! `#[kernel]`: makes a function an entry of the PTX module, and gives the host a typed handle of it.

use proc_macro::TokenStream;

mod arguments;
mod expand;
mod instances;
mod parameters;

/// Makes a function at module scope a kernel.
///
/// A plain function is one entry, of its own name, and its block is the launch's choice:
///
/// ```ignore
/// #[kernel]
/// pub fn scale(
///     /// What is multiplied, in place.
///     numbers: GlobalMut<f32>,
///     factor: f32,
/// ) { ... }
///
/// // On the host:
/// let kernel = scale::handle().with_block(256);
/// gpu.launch(kernel, grid, scale::Args { numbers: buffer.view_mut(), factor: 3.0 })
/// ```
///
/// The module of the kernel's name has two things for the host: `handle`, which is what a launch starts, and the struct
/// `Args`, which has a field for each parameter, of its name and with its docs. A field is a view of the host's for a
/// `Global`, `GlobalMut`, slice or pointer, and a number for a number. Each kernel has a struct of its own, which no
/// other kernel takes. Kernels with the same parameters can share a struct that [`arguments`](macro@crate::arguments)
/// makes.
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
/// A constant that somebody else decides is written with where it is decided, and does not compile if the two differ:
/// `[u8] x [32768 == tile_len(1)]`. Or it is a block alone, `[u8] x [{ tile_len(1) }]`, which is no part of the entry's
/// name.
///
/// Products of lists are joined by `+`, where not every type goes with every other: `instances = [Sum] x [f32, i32] +
/// [CountNan] x [f32]`. A kernel without a `block` of its own may say how many threads one has at most, by
/// `max_threads = 1024`, so that the assembler leaves each thread no more registers than such a block has.
///
/// With `min_blocks = 4`, too, it leaves them no more than so many blocks in one multiprocessor have. What does not fit
/// goes to memory.
///
/// Instances that several kernels have stand once, in a macro: `#[kernel(instances = operators!, block = 64)]` is
/// `operators! { [block = 64] fn ... }`, and the macro writes the attribute with the list:
///
/// ```ignore
/// macro_rules! operators {
///     ([$($rest:tt)*] $($function:tt)*) => {
///         #[kernel(instances = [Min, Max] x [f32, f64] + [Sum] x [i32], $($rest)*)]
///         $($function)*
///     };
/// }
/// ```
///
/// With `early`, the kernel's blocks may take their places while the kernel before it in the same order still runs,
/// where the device can (sm_90 and later): each waits, before anything of its own, until that one is done and all it
/// wrote can be seen. Between short kernels that saves most of the time that a launch takes. With `early = 528`, blocks
/// of grids of up to 528 blocks across read some of their parameters before they wait, if the kernel lets the next grid
/// in as well: what they read comes from the cache of constants afterwards. `cuda_builder` adds that to the PTX.
///
/// With `erase = path`, the CPU's code of a kernel over an operator and an element is one function for all instances
/// with the same sizes of element, state and output, which calls the operator's functions from a table. The path names
/// a type with two parameters, state and output, that is an operator for any of them and implements
/// `cuda_std::erase::Erase`.
///
/// Parameters are scalars, pointers, slices, `Global` and `GlobalMut`, or one struct of arguments. A kernel that is an
/// `unsafe fn` has an unsafe `handle`: who takes it promises that every launch keeps the kernel's contract. A safe one,
/// which can reach memory through views only, has a safe one.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if let Ok(instances::FromMacro { path, rest }) = syn::parse(attribute.clone()) {
        let item = proc_macro2::TokenStream::from(item);
        return quote::quote!(#path! { [#rest] #item }).into();
    }
    let expanded = syn::parse(attribute)
        .and_then(|attribute| Ok((attribute, syn::parse(item)?)))
        .and_then(|(attribute, function)| expand::kernel(&attribute, &function));
    match expanded {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Makes a struct the arguments of one or several kernels, which take it alone:
///
/// ```ignore
/// #[arguments]
/// pub struct ScaleArguments<T: Element> {
///     /// The numbers to scale.
///     pub input: Global<T>,
///     pub factor: u32,
///     pub output: GlobalMut<T>,
/// }
///
/// #[kernel(instances = [f32, f64])]
/// pub fn scale<T: Element>(ScaleArguments { input, factor, output }: ScaleArguments<T>) { ... }
///
/// // On the host:
/// gpu.launch(scale::handle::<f32>(), grid, ScaleArguments { input: x.view(), factor: 3, output: y.view_mut() })
/// ```
///
/// The PTX entry takes the fields one by one, in order, as it takes the parameters of other kernels. The struct's
/// fields are views of the kernel's in the kernel and the host's on the host, by a type parameter `Side` and a lifetime
/// that `#[arguments]` adds: the kernel's parameter is written `ScaleArguments<T>`, a handle's type
/// `Kernel<ScaleArguments<'static, T>>`.
///
/// Fields have the types that a kernel's parameters may have. A crate has one public struct of a name.
#[proc_macro_attribute]
pub fn arguments(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .and_then(|item| arguments::arguments(&item));
    match expanded {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
