//! Rust-CUDA's attributes other than `#[kernel]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Attribute, Error, Ident, ItemFn, ItemStatic, Meta, Result, Type};

/// `#[gpu_only]`: the function itself on a GPU, and a function that panics on the CPU.
pub fn gpu_only(function: &ItemFn) -> TokenStream {
    let ItemFn { attrs, vis, sig, .. } = function;
    let refusal = format!("`{}` is `#[gpu_only]`: it has no code for the CPU", sig.ident);
    quote! {
        #[cfg(target_arch = "nvptx64")]
        #function

        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(unused_variables, clippy::missing_safety_doc, clippy::too_many_arguments)]
        #(#attrs)*
        #vis #sig {
            ::core::panic!(#refusal)
        }
    }
}

/// `#[externally_visible]`: keeps a function in the PTX under its own name. On the CPU it is an ordinary function.
pub fn externally_visible(mut function: ItemFn) -> Result<TokenStream> {
    let attributes = function.attrs.len();
    function.attrs.retain(|attribute| !is_no_mangle(attribute));
    if function.attrs.len() == attributes {
        let refused = "an externally visible function needs a fixed name: add `#[unsafe(no_mangle)]`";
        return Err(Error::new_spanned(&function.sig.ident, refused));
    }
    Ok(quote! {
        #[cfg_attr(target_arch = "nvptx64", unsafe(no_mangle))]
        #function
    })
}

/// Whether the attribute is `no_mangle` or `unsafe(no_mangle)`.
fn is_no_mangle(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("no_mangle"),
        Meta::List(list) => list.path.is_ident("unsafe") && list.tokens.to_string() == "no_mangle",
        Meta::NameValue(_) => false,
    }
}

/// `#[address_space(...)]` on a static. Statics in shared memory are refused with an error that says what to write.
pub fn address_space(space: &Ident, item: &ItemStatic) -> Result<TokenStream> {
    match space.to_string().as_str() {
        // A static is in global memory, which may also be constant.
        "global" | "constant" => Ok(quote!(#item)),
        "shared" => Err(Error::new_spanned(item, shared_static_error(item))),
        "local" => Err(Error::new_spanned(space, "a static cannot be in local memory: use a variable of the kernel")),
        _ => Err(Error::new_spanned(space, "expected `global`, `constant`, `shared` or `local`")),
    }
}

/// The error for a static in shared memory, with what to write in its place.
fn shared_static_error(item: &ItemStatic) -> String {
    let name = item.ident.to_string().to_lowercase();
    let (element, len) = match &*item.ty {
        Type::Array(array) => (tokens(&array.elem), tokens(&array.len)),
        other => (tokens(other), "1".to_owned()),
    };
    format!(
        "a static cannot be in shared memory: races and indices out of bounds would not be found\n\
         write in the kernel:  let {name} = shared_array![{element}; {len}];\n\
         and for `{0}[i]`:  *{name}.add(i), or `{name}.load(i)` and `{name}.store(i, value)`",
        item.ident
    )
}

/// The source text, with the usual spacing.
fn tokens(source: &impl ToTokens) -> String {
    let text = source.to_token_stream().to_string();
    text.replace(" :: ", "::").replace(" ;", ";").replace("[ ", "[").replace(" ]", "]")
}
