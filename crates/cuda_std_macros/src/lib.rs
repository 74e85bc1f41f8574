//! `#[kernel]`: makes a function a PTX entry, and generates a typed handle for the host.

use proc_macro::TokenStream;

mod arguments;
mod attributes;
mod entry;
mod expand;
mod handle;
mod instances;
mod kernel;
mod parameters;
mod plain;

/// Makes a function at module scope a kernel.
///
/// A function without generic parameters is one entry of the same name. The launch chooses its block:
///
/// ```ignore
/// #[kernel]
/// pub fn scale(
///     /// Scaled in place.
///     numbers: GlobalMut<f32>,
///     factor: f32,
/// ) { ... }
///
/// // On the host:
/// let kernel = scale::handle().with_block(256);
/// gpu.launch(kernel, grid, scale::Args { numbers: buffer.view_mut(), factor: 3.0 })
/// ```
///
/// The kernel's module has two items for the host: `handle`, which a launch takes, and the struct `Args`, which has a
/// field for each parameter, with the parameter's name and docs. A field is a host view for a `Global`, `GlobalMut`,
/// slice or pointer, and a number for a number. Each kernel has its own `Args`, which no other kernel accepts. Kernels
/// with the same parameters can share a struct made by [`arguments`](macro@crate::arguments).
///
/// A generic function lists its instances: one list for each generic parameter, in order. Each combination is an entry,
/// named after the function and its arguments (`sum_f32_256`). `block`, an expression or up to three in brackets, fixes
/// the instance's block:
///
/// ```ignore
/// #[kernel(instances = [f32, i32] x [64, 128, 256], block = BLOCK)]
/// pub fn sum<T: Element, const BLOCK: usize>(input: Global<T>, partials: GlobalMut<T>) { ... }
///
/// sum::handle::<f32, 256>()             // on the host; `sum::handle::<f32, 100>()` does not compile
/// ```
///
/// If a constant repeats one defined elsewhere, write both: `[u8] x [32768 == tile_len(1)]` does not compile if they
/// differ. Or write only a block expression, `[u8] x [{ tile_len(1) }]`, which is not part of the entry's name.
///
/// `+` joins products of lists, for kernels that do not exist for every combination: `instances = [Sum] x [f32, i32] +
/// [CountNan] x [f32]`. A kernel without `block` may state its maximum block size by `max_threads = 1024`. `ptxas` then
/// limits the registers of a thread so that a block of that size fits in a multiprocessor.
///
/// With `min_blocks = 4` in addition, `ptxas` limits the registers so that 4 blocks fit in a multiprocessor. Values
/// that do not fit are spilled to local memory.
///
/// Kernels can share a list of instances by a macro. `#[kernel(instances = operators!, block = 64)] fn ...` expands to
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
/// With `dependent_launch`, the kernel is launched by programmatic dependent launch where the device can (sm_90 and
/// later): its blocks may start while the previous kernel of the stream still runs. Each block first waits until that
/// kernel is done and its writes are visible. This hides most of the launch latency between short kernels. With
/// `prefetch_blocks = 528`, the blocks of grids of up to 528 blocks along x read some of their parameters before they
/// wait, if the kernel also calls `launch_dependents`; after the wait the parameters come from the constant cache.
/// `cuda_builder` adds these reads to the PTX.
///
/// With `erase = path`, instances of a kernel over an operator and an element share their CPU code if their elements,
/// states and outputs have the same sizes. The shared function calls the operator's functions from a table. The path
/// names a type with two parameters, state and output, which is an operator for any of these and implements
/// `cuda_std::erase::Erase`.
///
/// A module that the source declares with the kernel's name (`mod add;` beside the kernel `add`) replaces the kernel's
/// module. A kernel without generic parameters in a file of the same name, such as `gemm` in `gemm.rs`, has no separate
/// module: its items are in the file's module (`gemm::handle()`), and `pub use gemm::gemm` does not collide.
///
/// Parameters are scalars, pointers, slices, `Global` and `GlobalMut`, or one argument struct. A kernel that is an
/// `unsafe fn` has an unsafe `handle`: the caller promises that every launch keeps the kernel's contract. A safe kernel
/// can reach memory only through views, so its `handle` is safe.
#[proc_macro_attribute]
pub fn kernel(attribute: TokenStream, item: TokenStream) -> TokenStream {
    if let Ok(instances::InstancesFromMacro { path, rest }) = syn::parse(attribute.clone()) {
        let item = proc_macro2::TokenStream::from(item);
        return quote::quote!(#path! { [#rest] #item }).into();
    }
    let file = proc_macro::Span::call_site().file();
    let expanded = syn::parse(attribute)
        .and_then(|attribute| Ok((attribute, syn::parse(item)?)))
        .and_then(|(attribute, function)| expand::kernel(&attribute, &function, module_of_file(&file)));
    tokens_or_error(expanded)
}

/// The name of a file's module: `gemm` for `gemm.rs` and for `gemm/mod.rs`.
fn module_of_file(file: &str) -> &str {
    let path = file.strip_suffix("/mod.rs").or(file.strip_suffix(".rs")).unwrap_or_default();
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

fn tokens_or_error(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Marks a function that has no code for the CPU: there, a call panics, which ends a launch in the executor with a
/// fault that names the function.
#[proc_macro_attribute]
pub fn gpu_only(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .map(|function| attributes::gpu_only(&function));
    tokens_or_error(expanded)
}

/// Keeps a `#[unsafe(no_mangle)]` function in the PTX under its name, whether or not a kernel calls it.
///
/// On the CPU it is an ordinary function, without that name in the program.
#[proc_macro_attribute]
pub fn externally_visible(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .and_then(attributes::externally_visible);
    tokens_or_error(expanded)
}

/// Names the memory of a static. `global` and `constant` change nothing, because statics are there anyway.
///
/// `shared` makes an array of the block, as `shared_array!` does. The static must be an array of `MaybeUninit`, or of
/// arrays of them, because shared memory has no initial value:
///
/// ```ignore
/// #[address_space(shared)]
/// static mut TILE: [MaybeUninit<f32>; 256] = [MaybeUninit::uninit(); 256];
///
/// TILE[i].write(x);
/// thread::sync_threads();
/// let y = TILE[255 - i].assume_init();
/// ```
///
/// The static becomes a constant of the type `cuda_std::shared::SharedStatic`. Every access is checked, and seen by the
/// executor, so none needs `unsafe`; where a source has it, rustc warns that it is not needed. `TILE[i] = x` and
/// pointers to the static do not compile.
#[proc_macro_attribute]
pub fn address_space(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(attribute)
        .and_then(|space| Ok((space, syn::parse(item)?)))
        .and_then(|(space, item)| attributes::address_space(&space, &item));
    tokens_or_error(expanded)
}

/// Makes a struct plain data (`cuda_std::element::Plain`), which buffers and shared memory hold, by implementing
/// `bytemuck::Pod` for it. Arrays of the struct are then plain, too.
///
/// The struct must have `#[repr(C)]` or `#[repr(transparent)]`, no generic parameters, plain fields and no padding.
#[proc_macro_derive(Plain)]
pub fn plain(item: TokenStream) -> TokenStream {
    tokens_or_error(syn::parse(item).and_then(|item| plain::plain(&item)))
}

/// Makes a struct the argument struct of one or more kernels, which take it as their only parameter:
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
/// The PTX entry takes the fields one by one, in order, as it takes the parameters of other kernels. The fields are
/// kernel views in the kernel and host views on the host, by a type parameter `Side` and a lifetime that `#[arguments]`
/// adds. The kernel's parameter is written `ScaleArguments<T>`, a handle's type `Kernel<ScaleArguments<'static, T>>`.
///
/// Fields have the types that a kernel's parameters may have. Public argument structs of one crate need different
/// names.
#[proc_macro_attribute]
pub fn arguments(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .and_then(|item| arguments::arguments(&item));
    tokens_or_error(expanded)
}
