//! The macros of `cuda_std`: `#[kernel]` makes a function a PTX entry and generates a typed handle for the host.

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
/// A function without generic parameters is one entry of the same name. The launch chooses the block size:
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
/// The kernel's module has two items for the host: `handle`, which returns the handle for a launch, and the struct
/// `Args`, which has a field for each parameter, with the parameter's name and docs. The field of a `Global`,
/// `GlobalMut`, slice or pointer is a host view; the field of a scalar is the scalar. Each kernel has its own `Args`,
/// which no other kernel accepts. Kernels with the same parameters can share a struct made by
/// [`arguments`](macro@crate::arguments).
///
/// A generic function lists its instances: one list for each generic parameter, in order. Each combination is an entry,
/// named after the function and its arguments (`sum_f32_256`). `block` fixes the block size of each instance. It is an
/// expression, or a list of two or three for a block of two or three dimensions:
///
/// ```ignore
/// #[kernel(instances = [f32, i32] x [64, 128, 256], block = BLOCK)]
/// pub fn sum<T: Element, const BLOCK: usize>(input: Global<T>, partials: GlobalMut<T>) { ... }
///
/// sum::handle::<f32, 256>()             // on the host; `sum::handle::<f32, 100>()` does not compile
/// ```
///
/// If a constant must equal one that is defined elsewhere, write both: `[u8] x [32768 == tile_len(1)]` does not compile
/// if they differ. Or write only a block expression, `[u8] x [{ tile_len(1) }]`, which is not part of the entry's name.
///
/// `+` joins products of lists, for a kernel that does not exist for every combination:
/// `instances = [Sum] x [f32, i32] + [CountNan] x [f32]`. An instance that is listed twice is one entry.
///
/// A kernel without `block` can declare its maximum block size, as `max_threads = 1024`. `ptxas` then limits the
/// registers per thread so that a block of that size fits on a multiprocessor. With `min_blocks = 4`, it limits them so
/// that 4 blocks fit. Values that then have no register are spilled to local memory.
///
/// Kernels can share a list of instances through a macro. `#[kernel(instances = operators!, block = 64)] fn ...`
/// expands to `operators! { [block = 64] fn ... }`, and the macro expands to the attribute with the list:
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
/// With `dependent_launch`, the kernel is launched by programmatic dependent launch if the device supports it (sm_90
/// and newer): its blocks may start while the previous kernel of the stream still runs. Each block first waits until
/// that kernel has completed and its writes are visible. This hides most of the launch latency between short kernels.
///
/// With `prefetch_blocks = 528` in addition, and if the kernel calls `launch_dependents`, the blocks of grids of up to
/// 528 blocks along x read some of their parameters before they wait. After the wait, these parameters are in the
/// constant cache. `cuda_builder` adds the reads to the PTX.
///
/// With `erase = path`, instances of a kernel over an operator and an element share their CPU code if their elements,
/// states and outputs have the same sizes. The shared function calls the operator's functions through a table. The path
/// names a type with two type parameters, the state and the output. The type is an operator for all states and outputs,
/// and implements `cuda_std::erase::Erase`.
///
/// If the source declares a module with the kernel's name (`mod add;` beside the kernel `add`), that module shadows the
/// kernel's module. A kernel without generic parameters in a file of the same name, such as `gemm` in `gemm.rs`, has no
/// separate module: its items are in the file's module (`gemm::handle()`), and `pub use gemm::gemm` does not collide.
///
/// The parameters are values, pointers, slices, `Global` and `GlobalMut`, or one argument struct. A value is of any
/// type that a buffer can hold (`cuda_std::element::Stored`), and aligned to at most 16 bytes. If the kernel is an
/// `unsafe fn`, its `handle` is unsafe, too: the caller promises that every launch meets the kernel's safety
/// conditions, and that each element of a slice is a value of its type. A safe kernel can access memory only through
/// views, so its `handle` is safe.
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

/// Marks a function that has no code for the CPU. On the CPU, a call panics: a launch in the executor ends with a fault
/// that names the function.
#[proc_macro_attribute]
pub fn gpu_only(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .map(|function| attributes::gpu_only(&function));
    tokens_or_error(expanded)
}

/// Keeps a `#[unsafe(no_mangle)]` function in the PTX under its name, even if no kernel calls it.
///
/// On the CPU it is an ordinary function with a mangled name.
#[proc_macro_attribute]
pub fn externally_visible(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .and_then(attributes::externally_visible);
    tokens_or_error(expanded)
}

/// Selects the address space of a static. `global` and `constant` have no effect.
///
/// `shared` makes the static an array in shared memory, as `shared_array!` does. It must be an array of `MaybeUninit`,
/// or of such arrays, because shared memory has no initial value:
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
/// The static becomes a constant of type `cuda_std::shared::SharedStatic`. Every access is checked and monitored by the
/// executor, so none needs `unsafe` (rustc warns about an `unsafe` block that is not needed). `TILE[i] = x` and
/// pointers to the static do not compile.
#[proc_macro_attribute]
pub fn address_space(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse(attribute)
        .and_then(|space| Ok((space, syn::parse(item)?)))
        .and_then(|(space, item)| attributes::address_space(&space, &item));
    tokens_or_error(expanded)
}

/// Makes a struct plain data (`cuda_std::element::Plain`), which buffers and shared memory can contain, by implementing
/// `bytemuck::Pod` for it. Arrays of the struct are then plain, too.
///
/// The struct must have `#[repr(C)]` or `#[repr(transparent)]`, no generic parameters, only plain fields, and no
/// padding. A `bool` is not plain: write `u8`.
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
/// The parameters of the PTX entry are the fields, in order. The fields are kernel views in the kernel and host views
/// on the host: `#[arguments]` adds a lifetime and a type parameter `Side` to the struct. The type of the kernel's
/// parameter is written `ScaleArguments<T>`, and the type of the handle is `Kernel<ScaleArguments<'static, T>>`.
///
/// A field can have any type that a kernel's parameter can have. The entry has at most 64 parameters, where a view or a
/// slice is two: its address and its length.
#[proc_macro_attribute]
pub fn arguments(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let expanded = syn::parse::<syn::parse::Nothing>(attribute)
        .and_then(|_| syn::parse(item))
        .and_then(|item| arguments::arguments(&item));
    tokens_or_error(expanded)
}
