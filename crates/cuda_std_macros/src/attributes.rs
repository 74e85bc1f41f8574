//! Rust-CUDA's attributes other than `#[kernel]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, Error, Expr, Ident, ItemFn, ItemStatic, Meta, Result, Stmt, Type};

/// Expands `#[gpu_only]`: on a GPU to the function itself, on the CPU to a function that panics.
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

/// Expands `#[externally_visible]`: the function stays in the PTX under its own name. On the CPU it is an ordinary
/// function.
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
pub fn is_no_mangle(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::Path(path) => path.is_ident("no_mangle"),
        Meta::List(list) => list.path.is_ident("unsafe") && list.tokens.to_string() == "no_mangle",
        Meta::NameValue(_) => false,
    }
}

/// Expands `#[address_space(...)]` on a static.
pub fn address_space(space: &Ident, item: &ItemStatic) -> Result<TokenStream> {
    match space.to_string().as_str() {
        // Statics are in global memory anyway, which can be read like constant memory.
        "global" | "constant" => Ok(quote!(#item)),
        "shared" => shared_static(item),
        "local" => Err(Error::new_spanned(space, "a static cannot be in local memory: use a variable of the kernel")),
        _ => Err(Error::new_spanned(space, "expected `global`, `constant`, `shared` or `local`")),
    }
}

/// Expands a static in shared memory to a constant. No place in the program has the static's address, so a pointer to
/// the static does not compile.
fn shared_static(item: &ItemStatic) -> Result<TokenStream> {
    let ItemStatic { attrs, vis, ident, ty, expr, .. } = item;
    if !is_array_of_uninitialized(ty) {
        return Err(Error::new_spanned(item, initialized_error(item)));
    }
    if !is_uninitialized(expr) {
        let refused = "shared memory has no initial value: write `MaybeUninit::uninit()` for each element";
        return Err(Error::new_spanned(expr, refused));
    }
    let name = format!("::{ident}");
    // The executor reports the array at this position.
    let new = quote_spanned!(ident.span()=> ::cuda_std::shared::SharedStatic::new());
    Ok(quote! {
        #(#attrs)*
        #vis const #ident: ::cuda_std::shared::SharedStatic<
            #ty,
            { ::cuda_std::shared::array_id(
                ::core::concat!(::core::file!(), #name),
                ::core::line!(),
                ::core::column!(),
            ) },
        > = #new;
    })
}

/// Whether the type is an array of `MaybeUninit`, or of such arrays.
fn is_array_of_uninitialized(ty: &Type) -> bool {
    let Type::Array(array) = ty else { return false };
    match &*array.elem {
        Type::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "MaybeUninit"),
        element => is_array_of_uninitialized(element),
    }
}

/// Whether the expression is `MaybeUninit::uninit()`, in a `const` block or not, or an array of it.
fn is_uninitialized(value: &Expr) -> bool {
    match value {
        Expr::Repeat(array) => is_uninitialized(&array.expr),
        Expr::Array(array) => array.elems.iter().all(is_uninitialized),
        Expr::Const(block) => matches!(&block.block.stmts[..], [Stmt::Expr(value, None)] if is_uninitialized(value)),
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) => path.path.segments.last().is_some_and(|segment| segment.ident == "uninit"),
            _ => false,
        },
        _ => false,
    }
}

/// The error for a static in shared memory whose elements are not `MaybeUninit`. It shows what to write instead.
fn initialized_error(item: &ItemStatic) -> String {
    let name = item.ident.to_string().to_lowercase();
    let (element, len) = match &*item.ty {
        Type::Array(array) => (tokens(&array.elem), tokens(&array.len)),
        other => (tokens(other), "1".to_owned()),
    };
    format!(
        "a static in shared memory is an array of `MaybeUninit`: shared memory has no initial value\n\
         write in the kernel:  let {name} = shared_array![{element}; {len}];\n\
         and for `{0}[i]`:  *{name}.add(i), or `{name}.load(i)` and `{name}.store(i, value)`",
        item.ident
    )
}

/// The source text of tokens, with the usual spacing.
fn tokens(source: &impl ToTokens) -> String {
    let text = source.to_token_stream().to_string();
    text.replace(" :: ", "::").replace(" ;", ";").replace("[ ", "[").replace(" ]", "]")
}
