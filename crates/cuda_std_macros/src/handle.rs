//! The handle and the argument struct of a kernel, for the host.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{GenericParam, Path, PathArguments, Type, TypePath, Visibility, parse_quote};

use crate::arguments::{ArgumentStruct, Field, element_of, is_known, mentions, take};
use crate::instances::Instance;
use crate::kernel::Kernel;
use crate::parameters::{Inputs, Parameter, SoleParameter, argument_of, with_static_lifetimes};

impl Kernel<'_> {
    /// The argument struct of a kernel with a list of parameters: its definition, and its type.
    fn args(&self, parameters: &[Parameter]) -> (TokenStream, TokenStream) {
        let fields = parameters.iter().map(|Parameter { name, ty, docs, .. }| Field {
            attributes: docs.clone(),
            visibility: Visibility::Public(Default::default()),
            name: name.clone(),
            ty: ty.clone(),
        });
        // A generic parameter that is itself the type of an element or of a scalar needs only the bound `Stored`. A
        // parameter that occurs inside another type keeps the kernel's bounds, and so do the parameters in these
        // bounds.
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
            plain.contains(&name.to_string()).then(|| parse_quote!(#name: ::cuda_std::element::Stored))
        };
        let generics: Vec<GenericParam> = self.generics.iter().filter_map(generic).collect();
        self.args_with(generics, fields.collect())
    }

    /// The struct `Args` with these fields: its definition, and its type.
    fn args_with(&self, generics: Vec<GenericParam>, fields: Vec<Field>) -> (TokenStream, TokenStream) {
        let name = self.name;
        let doc = format!("The arguments of [`{}`](fn@super::super::{name}), by name.", name.unraw());
        let arguments = ArgumentStruct {
            attributes: quote!(#[doc = #doc] #[allow(missing_docs)] #[cfg(not(target_arch = "nvptx64"))]),
            visibility: &Visibility::Public(Default::default()),
            name: format_ident!("Args"),
            generics,
            fields,
        };
        let own: Vec<TokenStream> = arguments.generics.iter().map(argument_of).collect();
        let (definition, implementation) = (arguments.definition(), arguments.parameters());
        (quote!(#definition #implementation), arguments.static_ty(&own))
    }

    /// The same for a kernel with a single parameter of an unknown type. If it turns out to be an argument struct, that
    /// is the type, and `Args` is not used.
    fn args_of_sole(&self, parameter: &SoleParameter) -> (TokenStream, TokenStream) {
        let Some((name, docs)) = &parameter.name else {
            return (self.assert_argument_struct(&parameter.ty), static_argument_struct(&parameter.ty));
        };
        let field = Field {
            attributes: docs.clone(),
            visibility: Visibility::Public(Default::default()),
            name: name.clone(),
            ty: parse_quote!(Value),
        };
        let (definition, _) = self.args_with(vec![parse_quote!(Value)], vec![field]);
        let ty = static_type(&parameter.ty);
        (definition, quote!(<#ty as ::cuda_std::launch::FromSlots<'static>>::Args<Args<#ty>>))
    }

    /// Code that says why a value cannot be a pattern, if the type is one: the other errors would not.
    fn assert_argument_struct(&self, ty: &TypePath) -> TokenStream {
        let Some(instance) = self.instances.first() else { return TokenStream::new() };
        let (aliases, ty) = (self.aliases(instance), static_type(ty));
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            const _: () = {
                #aliases
                ::cuda_std::launch::assert_argument_struct::<#ty>();
            };
        }
    }

    /// Code that fails to compile if the kernel takes a value that PTX entries cannot take.
    fn assert_values(&self, instance: &Instance, args: &TokenStream) -> TokenStream {
        let is_checked = match &self.inputs {
            Inputs::Listed(parameters) => parameters.iter().any(|parameter| !is_known(&parameter.ty)),
            Inputs::Sole(_) => true,
        };
        let aliases = self.aliases(instance);
        let check = quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            const _: &[::cuda_std::launch::NamedParameter] = {
                #aliases
                <#args as ::cuda_std::launch::Parameters>::PARAMETERS
            };
        };
        if is_checked { check } else { TokenStream::new() }
    }

    /// The module's items for the host.
    pub fn host(&self) -> TokenStream {
        let generics = &self.generics;
        let arguments: Vec<TokenStream> = generics.iter().map(|parameter| argument_of(parameter)).collect();
        let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
        let (args_struct, args) = match &self.inputs {
            Inputs::Listed(parameters) => self.args(parameters),
            Inputs::Sole(parameter) => self.args_of_sole(parameter),
        };
        let unsafety = &self.function.sig.unsafety;
        let safety = unsafety.map(|_| {
            quote! {
                ///
                /// # Safety
                /// Every launch with this handle must keep the kernel's contract.
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
        let names: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let input = match &self.inputs {
            Inputs::Sole(SoleParameter { ty, name: Some(_) }) if mentions(ty.to_token_stream(), &names) => {
                let ty = static_type(ty);
                Some(quote!(, #ty: ::cuda_std::launch::FromSlots<'static>))
            }
            _ => None,
        };
        let bound =
            (!generics.is_empty()).then(|| quote!(where Instance #turbofish: ::cuda_std::launch::Instance #input));
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
        let assertions = self.instances.iter().map(|instance| {
            let (assertions, aliases) = (instance.assertions(), self.aliases(instance));
            let of_constants = (!assertions.is_empty()).then(|| quote!(const _: () = { #aliases #assertions };));
            let of_values = self.assert_values(instance, &args);
            quote!(#of_constants #of_values)
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

    /// The kernel with an erased operator, generic over the sizes of its types.
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
            Inputs::Listed(parameters) => parameters.iter().map(|parameter| take(&parameter.ty)).collect(),
            Inputs::Sole(_) => vec![quote!(::cuda_std::launch::FromSlots::from_slots(&mut slots))],
        };
        quote! {
            #[allow(unused_mut, unused_variables)]
            let mut slots = ::cuda_std::launch::Slots::new(slots);
            // SAFETY: the slots are those of a launch of this kernel.
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

    /// The implementation of `Instance`, through which the handle finds this instance.
    fn implementation(&self, instance: &Instance, args: &TokenStream) -> TokenStream {
        let arguments = &instance.arguments;
        let turbofish = (!arguments.is_empty()).then(|| quote!(::<#(#arguments),*>));
        let entry = self.entry_name(instance).unraw().to_string();
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

/// A type with the lifetime `'static`, whether or not it has a lifetime.
fn static_type(ty: &TypePath) -> TokenStream {
    quote!(::cuda_std::launch::Static<fn(&()) -> #ty>)
}

/// An argument struct's type with the lifetime `'static`, as in the type of a handle.
fn static_argument_struct(ty: &TypePath) -> TokenStream {
    let mut ty = ty.clone();
    let last = ty.path.segments.last_mut().expect("a path has a segment");
    match &mut last.arguments {
        PathArguments::AngleBracketed(arguments) => arguments.args.insert(0, parse_quote!('static)),
        none => *none = PathArguments::AngleBracketed(parse_quote!(<'static>)),
    }
    with_static_lifetimes(&Type::Path(ty)).to_token_stream()
}
