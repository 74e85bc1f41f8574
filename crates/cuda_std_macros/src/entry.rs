//! The PTX entries of a kernel.

use std::env;

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::arguments::{entry_parameters, is_known};
use crate::instances::Instance;
use crate::kernel::Kernel;
use crate::parameters::{Inputs, Parameter};

impl Kernel<'_> {
    /// A module with the entries of the current compilation; `None` if it compiles no entries.
    pub fn entries(&self) -> Option<TokenStream> {
        // Only the primary package has entries. The entries of its dependencies are in their own PTX.
        env::var_os("CARGO_PRIMARY_PACKAGE")?;
        let instances = self.instances.iter().filter(|instance| is_in_part(&instance.suffix));
        let entries = instances.map(|instance| self.entry(instance));
        Some(quote! {
            #[cfg(target_arch = "nvptx64")]
            mod entries {
                #(#entries)*
            }
        })
    }

    /// The PTX entry of one instance.
    fn entry(&self, instance: &Instance) -> TokenStream {
        let entry = self.entry_name(instance);
        let aliases = self.aliases(instance);
        let (name, arguments) = (self.name, &instance.arguments);
        let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
        let sides = (0..3).map(|axis| self.block.get(axis).map_or(quote!(1), |side| quote!((#side) as u32)));
        let block = match (self.block.is_empty(), self.max_threads) {
            (false, _) => quote!(::cuda_std::__block!(#(#sides),*);),
            (true, Some(threads)) => quote!(::cuda_std::__max_threads!((#threads) as u32);),
            (true, None) => quote!(),
        };
        let min_blocks = self.min_blocks.map(|blocks| quote!(::cuda_std::__min_blocks!((#blocks) as u32);));
        let wait = self.dependent_launch.then(|| quote!(::cuda_std::internal::wait_for_prerequisites();));
        let prefetch = self.prefetch_blocks.map(|blocks| quote!(::cuda_std::__prefetch_blocks!((#blocks) as u32);));
        let before = quote!(#block #min_blocks #prefetch #wait);
        let kernel = quote!(super::super::super::super::#name #turbofish);
        let entry_function = match &self.inputs {
            Inputs::Listed(parameters) => {
                let (mut entry_parameters, mut call_arguments) = (Vec::new(), Vec::new());
                // Before the entry is compiled: rustc has no layout of PTX parameters for some values.
                let values = parameters.iter().map(|parameter| &parameter.ty).filter(|ty| !is_known(ty));
                let checks = quote!(#(const _: () = ::cuda_std::launch::assert_by_value::<#values>();)*);
                for Parameter { name, ty, is_view, .. } in parameters {
                    if *is_view {
                        let len = format_ident!("{}_len", name);
                        entry_parameters.push(quote!(#name: <#ty as ::cuda_std::internal::AddressAndLength>::Pointer));
                        entry_parameters.push(quote!(#len: usize));
                        call_arguments
                            .push(quote!(<#ty as ::cuda_std::internal::AddressAndLength>::from_parts(#name, #len)));
                    } else {
                        entry_parameters.push(quote!(#name: #ty));
                        call_arguments.push(quote!(#name));
                    }
                }
                quote! {
                    #checks
                    ::cuda_std::__entry! {
                        #entry(#(#entry_parameters),*) {
                            #before
                            // SAFETY: the host passes the parameters of this entry.
                            #[allow(unused_unsafe)]
                            unsafe { #kernel(#(#call_arguments),*) }
                        }
                    }
                }
            }
            Inputs::Sole(parameter) => {
                let (ty, names) = (&parameter.ty, entry_parameters());
                let input = quote!(<#ty as ::cuda_std::internal::EntryInput>);
                quote! {
                    const _: () = #input::CHECK;

                    ::cuda_std::__entry! {
                        #entry(#(#names: #input::#names),*) {
                            #before
                            // SAFETY: the host passes the parameters of this entry.
                            unsafe { #kernel(#input::from_parts(#(#names),*)) }
                        }
                    }
                }
            }
        };
        quote! {
            mod #entry {
                #[allow(unused_imports)]
                use super::super::super::super::*;
                #aliases
                #entry_function
            }
        }
    }
}

/// Whether the instances with this suffix belong to the current compilation. `cuda_builder` compiles the entries of a
/// crate in parts; `CUDA_BUILDER_PART` has the number of the part and the number of parts, as in `0/2`.
///
/// All instances of one type (the last word of the suffix that is not a number) belong to the same part. They share
/// functions, which LLVM could inline differently in two parts.
fn is_in_part(suffix: &str) -> bool {
    let part = env::var("CUDA_BUILDER_PART").unwrap_or_default();
    let Some((Ok(part), Ok(parts))) =
        part.split_once('/').map(|(part, parts)| (part.parse::<u64>(), parts.parse::<u64>()))
    else {
        return true;
    };
    let ty = suffix.rsplit('_').find(|word| word.parse::<u64>().is_err()).unwrap_or_default();
    // FNV-1a. Its highest bits happen to split warpfold's types into halves with equal compile times.
    let hash = ty
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 52) % parts.max(1) == part
}
