//! Expands `#[kernel]`: the function itself, and a module of its name with the PTX entries (on a GPU) or the handle (on
//! the host).

use std::env;

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{
    Error, Expr, FnArg, GenericArgument, GenericParam, Generics, Ident, ItemFn, Path, PathArguments, Result,
    ReturnType, Type, TypePath, Visibility, parse_quote,
};

use crate::arguments::{Arguments, Field, element_of, mentions};
use crate::instances::{Attribute, Instance, instances};
use crate::parameters::{Inputs, Parameter, inputs, with_static_lifetimes};

/// Expands the attribute on `function`, which is in a file whose module has this name.
pub fn kernel(attribute: &Attribute, function: &ItemFn, module: &str) -> Result<TokenStream> {
    let signature = &function.sig;
    if signature.asyncness.is_some() || signature.constness.is_some() || signature.abi.is_some() {
        return Err(Error::new_spanned(signature, "a kernel is a plain `fn` or `unsafe fn`"));
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
        has_module_of_file: signature.ident == module && signature.generics.params.is_empty(),
    };
    Ok(kernel.expand())
}

/// Whether the instances with this suffix belong to the current compilation: `cuda_builder` compiles a crate's entries
/// in parts, and `CUDA_BUILDER_PART` names the part and the number of parts, as in `0/2`.
///
/// All instances of one type, the suffix's last word, belong to one part, because they share functions, and LLVM may
/// inline a shared function differently.
fn is_in_part(suffix: &str) -> bool {
    let part = env::var("CUDA_BUILDER_PART").unwrap_or_default();
    let Some((Ok(part), Ok(parts))) =
        part.split_once('/').map(|(part, parts)| (part.parse::<u64>(), parts.parse::<u64>()))
    else {
        return true;
    };
    let ty = suffix.rsplit('_').find(|word| word.parse::<u64>().is_err()).unwrap_or_default();
    // FNV-1a, whose highest bits happen to split warpfold's types into halves of equal compile time.
    let hash = ty
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash >> 52) % parts.max(1) == part
}

/// Whether there are two generic parameters, both types.
fn is_of_operator_and_element(generics: &Generics) -> bool {
    generics.params.len() == 2 && generics.type_params().count() == 2
}

struct Kernel<'a> {
    function: &'a ItemFn,
    name: &'a Ident,
    generics: Vec<&'a GenericParam>,
    inputs: Inputs,
    instances: Vec<Instance>,
    block: &'a [Expr],
    max_threads: Option<&'a Expr>,
    min_blocks: Option<&'a Expr>,
    dependent_launch: bool,
    prefetch_blocks: Option<&'a Expr>,
    erase: Option<&'a Path>,
    /// The file's module stands for the kernel's.
    has_module_of_file: bool,
}

impl Kernel<'_> {
    fn expand(&self) -> TokenStream {
        // The docs of parameters move to the struct's fields: rustc allows none on a parameter.
        let mut function = self.function.clone();
        for input in &mut function.sig.inputs {
            if let FnArg::Typed(argument) = input {
                argument.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
            }
        }
        // Only in the crate that cargo builds for its kernels. The entries of the crates that it uses are in their own
        // PTX.
        let entries = env::var_os("CARGO_PRIMARY_PACKAGE").map(|_| {
            let entries = self
                .instances
                .iter()
                .filter(|instance| is_in_part(&instance.suffix))
                .map(|instance| self.entry(instance));
            quote! {
                #[cfg(target_arch = "nvptx64")]
                mod entries {
                    #(#entries)*
                }
            }
        });
        let module = self.module(entries);
        quote! {
            #[inline(always)]
            #[allow(clippy::too_many_arguments)]
            #function

            #module
        }
    }

    /// The kernel's module, by a glob import, so that a module of its name that the source declares replaces it.
    ///
    /// `pub use gemm::gemm` of a file's kernel would import the module with the function, beside the file's own module.
    /// So the kernel's is private there, and its items are in the file's.
    fn module(&self, entries: Option<TokenStream>) -> TokenStream {
        let (name, visibility) = (self.name, &self.function.vis);
        let imported = format_ident!("__kernel_{name}");
        let doc = format!("The entries and the handle of the kernel [`{name}`](fn@{name}).");
        let host = self.host();
        let import = match self.has_module_of_file {
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

    /// The entry's name in PTX.
    fn entry_name(&self, instance: &Instance) -> Ident {
        match instance.suffix.as_str() {
            "" => self.name.clone(),
            suffix => format_ident!("{}_{}", self.name, suffix),
        }
    }

    /// Aliases the instance's arguments to the kernel's generic parameters, so that parameter types and the block's
    /// expressions can be used as written.
    fn aliases(&self, instance: &Instance) -> TokenStream {
        self.generics
            .iter()
            .zip(&instance.arguments)
            .map(|(parameter, argument)| match parameter {
                GenericParam::Type(ty) => {
                    let name = &ty.ident;
                    quote!(#[allow(dead_code)] type #name = #argument;)
                }
                GenericParam::Const(constant) => {
                    let (name, ty) = (&constant.ident, &constant.ty);
                    quote!(#[allow(dead_code)] const #name: #ty = #argument;)
                }
                GenericParam::Lifetime(_) => unreachable!("refused with the instances"),
            })
            .collect()
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
                let mut entry_parameters = Vec::new();
                let mut call_arguments = Vec::new();
                for Parameter { name, ty, is_view, .. } in parameters {
                    if *is_view {
                        let len = format_ident!("{name}_len");
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
                    ::cuda_std::__entry! {
                        #entry(#(#entry_parameters),*) {
                            #before
                            // SAFETY: the host's launch has made the parameters for this entry.
                            #[allow(unused_unsafe)]
                            unsafe { #kernel(#(#call_arguments),*) }
                        }
                    }
                }
            }
            Inputs::Struct(ty) => {
                let mut path = ty.path.clone();
                let last = path.segments.last_mut().expect("a path has a segment");
                let types: Vec<GenericArgument> = match std::mem::take(&mut last.arguments) {
                    PathArguments::AngleBracketed(arguments) => {
                        let is_type = |argument: &GenericArgument| matches!(argument, GenericArgument::Type(_));
                        arguments.args.into_iter().filter(is_type).collect()
                    }
                    _ => Vec::new(),
                };
                quote!(#path! { #entry, #kernel, [#path], { #before }, [#(#types),*] })
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

    /// The argument struct of a kernel that lists its parameters.
    fn args(&self, parameters: &[Parameter]) -> (TokenStream, TokenStream) {
        let fields = parameters.iter().map(|Parameter { name, ty, docs, .. }| Field {
            attributes: docs.clone(),
            visibility: Visibility::Public(Default::default()),
            name: name.clone(),
            ty: ty.clone(),
        });
        // A generic parameter that is itself the type of an element or of a number needs only that bound. One that is
        // part of a type keeps the kernel's bounds, and so do the parameters that those bounds name.
        let elements: Vec<TokenStream> = parameters.iter().map(|Parameter { ty, .. }| element_of(ty)).collect();
        let (plain, composed): (Vec<_>, Vec<_>) = elements.into_iter().partition(|element| {
            let element = element.to_string();
            self.generics.iter().any(|parameter| argument_of(parameter).to_string() == element)
        });
        let named_in = |tokens: &TokenStream| -> Vec<String> {
            let names = self.generics.iter().map(|parameter| argument_of(parameter).to_string());
            names.filter(|name| mentions(tokens.clone(), std::slice::from_ref(name))).collect()
        };
        let mut named: TokenStream = composed.into_iter().collect();
        let mut bounded = named_in(&named);
        loop {
            let of_name = |parameter: &&&GenericParam| bounded.contains(&argument_of(parameter).to_string());
            named.extend(self.generics.iter().filter(of_name).map(ToTokens::to_token_stream));
            let more = named_in(&named);
            if more.len() == bounded.len() {
                break;
            }
            bounded = more;
        }
        let plain = named_in(&plain.into_iter().collect());
        let generic = |parameter: &&GenericParam| {
            let name = argument_of(parameter);
            if bounded.contains(&name.to_string()) {
                return Some((*parameter).clone());
            }
            plain.contains(&name.to_string()).then(|| parse_quote!(#name: ::cuda_std::element::Plain))
        };
        let generics: Vec<GenericParam> = self.generics.iter().filter_map(generic).collect();
        let name = self.name;
        let doc = format!("The arguments of [`{name}`](fn@super::super::{name}), by name.");
        let arguments = Arguments {
            attributes: quote!(#[doc = #doc] #[allow(missing_docs)] #[cfg(not(target_arch = "nvptx64"))]),
            visibility: &Visibility::Public(Default::default()),
            name: format_ident!("Args"),
            generics,
            fields: fields.collect(),
        };
        let own: Vec<TokenStream> = arguments.generics.iter().map(argument_of).collect();
        let (definition, implementation) = (arguments.definition(), arguments.parameters());
        (quote!(#definition #implementation), arguments.static_ty(&own))
    }

    /// The module's items for the host.
    fn host(&self) -> TokenStream {
        let generics = &self.generics;
        let arguments: Vec<TokenStream> = generics.iter().map(|parameter| argument_of(parameter)).collect();
        let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
        let (args_struct, args) = match &self.inputs {
            Inputs::Listed(parameters) => self.args(parameters),
            Inputs::Struct(ty) => (quote!(), with_static_struct(ty)),
        };
        let unsafety = &self.function.sig.unsafety;
        let safety = unsafety.map(|_| {
            quote! {
                ///
                /// # Safety
                /// Every launch made with the handle keeps the kernel's contract.
            }
        });
        let instance = quote!(<Instance #turbofish as ::cuda_std::launch::Instance>);
        let id = quote! {
            ::cuda_std::launch::KernelId { library: env!("CARGO_CRATE_NAME"), entry: #instance::ENTRY }
        };
        let (handle_type, new) = if self.block.is_empty() {
            (
                quote!(::cuda_std::launch::AnyBlock<#args>),
                quote!(::cuda_std::launch::AnyBlock::new(#id, #instance::PARAMETERS, #instance::THREAD)),
            )
        } else {
            (
                quote!(::cuda_std::launch::Kernel<#args>),
                quote! {{
                    let [x, y, z] = #instance::BLOCK;
                    let block = ::cuda_std::launch::Dim3::new(x, y, z);
                    ::cuda_std::launch::Kernel::new(#id, block, #instance::PARAMETERS, #instance::THREAD)
                }},
            )
        };
        let bound = (!generics.is_empty()).then(|| quote!(where Instance #turbofish: ::cuda_std::launch::Instance));
        let marker_fields = generics.iter().filter_map(|parameter| match parameter {
            GenericParam::Type(ty) => {
                let name = &ty.ident;
                Some(quote!(::core::marker::PhantomData<#name>))
            }
            _ => None,
        });
        let bare_generics = generics.iter().map(|parameter| match parameter {
            GenericParam::Type(ty) => {
                let name = &ty.ident;
                quote!(#name)
            }
            other => quote!(#other),
        });
        let implementations = self.instances.iter().map(|instance| self.implementation(instance, &args));
        let erased = self.erase.map(|erase| self.erased(erase));
        let assertions = self.instances.iter().filter_map(|instance| {
            let (assertions, aliases) = (instance.assertions(), self.aliases(instance));
            (!assertions.is_empty()).then(|| quote!(const _: () = { #aliases #assertions };))
        });
        quote! {
            #args_struct

            #(#assertions)*

            #[cfg(not(target_arch = "nvptx64"))]
            #[doc(hidden)]
            #[allow(dead_code)]
            pub struct Instance<#(#bare_generics),*>(#(#marker_fields),*);

            #erased

            #[cfg(not(target_arch = "nvptx64"))]
            const _: () = { #(#implementations)* };

            /// The kernel's handle, for a launch.
            #safety
            #[cfg(not(target_arch = "nvptx64"))]
            pub #unsafety fn handle<#(#generics),*>() -> #handle_type #bound {
                // SAFETY: `THREAD` runs this kernel, and these are its parameters.
                unsafe { #new }
            }
        }
    }

    /// The kernel with an erased operator, for any sizes.
    fn erased(&self, erase: &Path) -> TokenStream {
        let call = self.call(quote!(::<#erase<S, U>, T>));
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            ::cuda_std::__for_executor! {
                struct ErasedKernel;

                impl ::cuda_std::launch::ErasedKernel for ErasedKernel {
                    unsafe fn thread<T, S, U>(slots: &[u64])
                    where
                        T: ::cuda_std::element::Element,
                        S: ::cuda_std::element::Plain,
                        U: ::cuda_std::element::Plain,
                    {
                        #call
                    }
                }
            }
        }
    }

    /// Calls the kernel with the arguments that `slots` hold.
    fn call(&self, turbofish: TokenStream) -> TokenStream {
        let name = self.name;
        let take = match &self.inputs {
            Inputs::Listed(parameters) => parameters.iter().map(|_| quote!(slots.take())).collect(),
            Inputs::Struct(_) => vec![quote!(::cuda_std::launch::FromSlots::from_slots(&mut slots))],
        };
        quote! {
            #[allow(unused_mut, unused_variables)]
            let mut slots = ::cuda_std::launch::Slots::new(slots);
            // SAFETY: the launch has made the slots of arguments for this kernel.
            #[allow(unused_unsafe)]
            unsafe { super::super::#name #turbofish(#(#take),*) }
        }
    }

    /// The function that runs one thread of the instance from the slots of its arguments.
    fn thread(&self, instance: &Instance) -> TokenStream {
        let arguments = &instance.arguments;
        let call = match self.erase {
            // A separate function, so that this crate compiles the functions that it calls.
            Some(erase) => quote! {
                const THREAD: unsafe fn(&[u64]) =
                    ::cuda_std::launch::erased_thread::<ErasedKernel, #erase, #(#arguments),*>();
                // SAFETY: the slots are those of the instance, which has these sizes.
                unsafe { THREAD(slots) }
            },
            None if arguments.is_empty() => self.call(quote!()),
            None => self.call(quote!(::<#(#arguments),*>)),
        };
        quote! {
            ::cuda_std::__thread!({
                unsafe fn thread(slots: &[u64]) {
                    #call
                }
                thread
            })
        }
    }

    /// The instance's implementation of `Instance`, by which the handle finds it.
    fn implementation(&self, instance: &Instance, args: &TokenStream) -> TokenStream {
        let arguments = &instance.arguments;
        let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
        let entry = self.entry_name(instance).to_string();
        let aliases = self.aliases(instance);
        let thread = self.thread(instance);
        let sides = (0..3).map(|axis| match (self.block.is_empty(), self.block.get(axis)) {
            (true, _) => quote!(0),
            (false, Some(side)) => quote!((#side) as u32),
            (false, None) => quote!(1),
        });
        quote! {
            // SAFETY: this is the kernel's own expansion.
            unsafe impl ::cuda_std::launch::Instance for Instance #turbofish {
                const ENTRY: &'static str = #entry;
                const BLOCK: [u32; 3] = { #aliases [#(#sides),*] };
                const PARAMETERS: &'static [::cuda_std::launch::NamedParameter] =
                    { #aliases <#args as ::cuda_std::launch::Parameters>::PARAMETERS };
                const THREAD: unsafe fn(&[u64]) = #thread;
            }
        }
    }
}

/// A generic parameter as an argument: only its name.
pub fn argument_of(parameter: &GenericParam) -> TokenStream {
    match parameter {
        GenericParam::Type(ty) => {
            let name = &ty.ident;
            quote!(#name)
        }
        GenericParam::Const(constant) => {
            let name = &constant.ident;
            quote!(#name)
        }
        GenericParam::Lifetime(lifetime) => quote!(#lifetime),
    }
}

/// The struct's type as a handle names it.
fn with_static_struct(ty: &TypePath) -> TokenStream {
    let mut ty = ty.clone();
    let last = ty.path.segments.last_mut().expect("a path has a segment");
    match &mut last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.insert(0, parse_quote!('static)),
        none => *none = PathArguments::AngleBracketed(parse_quote!(<'static>)),
    }
    with_static_lifetimes(&Type::Path(ty)).to_token_stream()
}
