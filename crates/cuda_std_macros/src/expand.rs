//! Expands `#[kernel]` to the function itself, and a module of the same name with the PTX entries (on a GPU) or the
//! handle (on the host).

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Attribute, Error, FnArg, Generics, ItemFn, Meta, Result, ReturnType};

use crate::attributes::is_no_mangle;
use crate::instances::{KernelAttribute, instances};
use crate::kernel::Kernel;
use crate::parameters::inputs;

/// Expands the attribute on `function`. `module` is the name of the file's module.
pub fn kernel(attribute: &KernelAttribute, function: &ItemFn, module: &str) -> Result<TokenStream> {
    let signature = &function.sig;
    if signature.asyncness.is_some() || signature.constness.is_some() || signature.abi.is_some() {
        return Err(Error::new_spanned(
            signature,
            "a kernel must be a `fn` or an `unsafe fn`, without `async`, `const` or `extern`",
        ));
    }
    if let Some(name) = function.attrs.iter().find(|attribute| is_export_name(attribute)) {
        return Err(Error::new_spanned(name, "a kernel's entry has the function's name: leave `export_name` out"));
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        return Err(Error::new_spanned(ty, "a kernel returns nothing: it writes to a `GlobalMut`"));
    }
    if let Some(clause) = &signature.generics.where_clause {
        return Err(Error::new_spanned(clause, "write a kernel's bounds at its generic parameters, without `where`"));
    }
    if let (Some(blocks), true, None) = (&attribute.min_blocks, attribute.block.is_empty(), &attribute.max_threads) {
        return Err(Error::new_spanned(blocks, "`min_blocks` needs `block` or `max_threads`"));
    }
    if let (Some(blocks), false) = (&attribute.prefetch_blocks, attribute.dependent_launch) {
        return Err(Error::new_spanned(blocks, "`prefetch_blocks` needs `dependent_launch`"));
    }
    if let (Some(erase), false) = (&attribute.erase, is_of_operator_and_element(&signature.generics)) {
        return Err(Error::new_spanned(
            erase,
            "a kernel with `erase` has two type parameters, the operator and the element",
        ));
    }
    if let (Some(threads), false) = (&attribute.max_threads, attribute.block.is_empty()) {
        return Err(Error::new_spanned(
            threads,
            "`block` already fixes the number of threads: leave `max_threads` out",
        ));
    }
    let kernel = Kernel {
        function,
        name: &signature.ident,
        generics: signature.generics.params.iter().collect(),
        inputs: inputs(signature)?,
        instances: instances(attribute, &signature.generics)?,
        block: &attribute.block,
        max_threads: attribute.max_threads.as_ref(),
        min_blocks: attribute.min_blocks.as_ref(),
        dependent_launch: attribute.dependent_launch,
        prefetch_blocks: attribute.prefetch_blocks.as_ref(),
        erase: attribute.erase.as_ref(),
        uses_module_of_file: signature.ident.unraw() == module && signature.generics.params.is_empty(),
    };
    Ok(kernel.expand())
}

/// Whether the attribute is `export_name = ...` or `unsafe(export_name = ...)`.
fn is_export_name(attribute: &Attribute) -> bool {
    match &attribute.meta {
        Meta::List(list) if list.path.is_ident("unsafe") => list.tokens.to_string().starts_with("export_name"),
        meta => meta.path().is_ident("export_name"),
    }
}

/// Whether there are two generic parameters, both types.
fn is_of_operator_and_element(generics: &Generics) -> bool {
    generics.params.len() == 2 && generics.type_params().count() == 2
}

impl Kernel<'_> {
    fn expand(&self) -> TokenStream {
        // The docs of parameters move to the struct's fields, because rustc allows no docs on a parameter.
        let mut function = self.function.clone();
        // The entry has this attribute. The function itself is inlined in the entry.
        function.attrs.retain(|attribute| !is_no_mangle(attribute));
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(argument) = input {
                argument.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
            }
        }
        let module = self.module();
        quote! {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            #function

            #module
        }
    }

    /// The kernel's module. It is imported with a glob, so that a module of the same name in the source shadows it.
    ///
    /// If the kernel has the name of its file, `pub use gemm::gemm` would import both the function and the kernel's
    /// module, which would collide with the file's module. In this case the kernel's module is private, and its items
    /// are imported into the file's module.
    fn module(&self) -> TokenStream {
        let (name, visibility) = (self.name, &self.function.vis);
        let imported = format_ident!("__kernel_{}", name);
        let doc = format!("The entries and the handle of the kernel [`{}`](fn@{name}).", name.unraw());
        let (entries, host) = (self.entries(), self.host());
        let import = match self.uses_module_of_file {
            false => quote!(#visibility use #imported::*;),
            true => quote! {
                use #imported::*;
                #[allow(unused_imports)]
                #visibility use #imported::#name::*;
            },
        };
        quote! {
            #[doc(hidden)]
            #visibility mod #imported {
                #[allow(unused_imports)]
                use super::*;

                #[doc = #doc]
                pub mod #name {
                    #[allow(unused_imports)]
                    use super::super::*;

                    #entries

                    #host
                }
            }

            #[allow(unused_imports)]
            #import
        }
    }
}
