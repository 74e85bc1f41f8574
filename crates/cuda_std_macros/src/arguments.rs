//! Argument structs of kernels: from a struct with `#[arguments]`, or from the parameters of a `#[kernel]`.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, Fields, GenericArgument, GenericParam, Ident, ItemStruct, PathArguments, Result, Type, Visibility,
};

use crate::parameters::{
    NAMED_LIFETIME_ERROR, argument_of, is_primitive, named_lifetime, with_static_lifetimes, without_parentheses,
};

/// A field of an argument struct.
pub struct Field {
    pub attributes: Vec<Attribute>,
    pub visibility: Visibility,
    pub name: Ident,
    pub ty: Type,
}

/// Whether a type is a view, a slice or a pointer, or a primitive type: all else may be a value that kernels cannot
/// take.
pub fn is_known(ty: &Type) -> bool {
    match without_parentheses(ty) {
        Type::Path(path) if is_primitive(path) => true,
        ty => matches!(ArgumentKind::of(ty), ArgumentKind::Memory(..)),
    }
}

/// How an argument is passed.
enum ArgumentKind<'a> {
    /// A view, a slice or a pointer. Has the name of the associated type of `Side`, and the element type.
    Memory(&'static str, &'a Type),
    Scalar,
}

impl<'a> ArgumentKind<'a> {
    fn of(ty: &'a Type) -> Self {
        match without_parentheses(ty) {
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(slice) => Self::Memory("Slice", &slice.elem),
                _ => Self::Scalar,
            },
            Type::Ptr(pointer) if pointer.mutability.is_some() => Self::Memory("PointerMut", &pointer.elem),
            Type::Ptr(pointer) => Self::Memory("Pointer", &pointer.elem),
            Type::Path(path) => {
                let segment = path.path.segments.last().expect("a path has a segment");
                let name = match segment.ident.to_string().as_str() {
                    "Global" => "Global",
                    "GlobalMut" => "GlobalMut",
                    _ => return Self::Scalar,
                };
                let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return Self::Scalar };
                let element = arguments.args.iter().find_map(|argument| match argument {
                    GenericArgument::Type(ty) => Some(ty),
                    _ => None,
                });
                element.map_or(Self::Scalar, |element| Self::Memory(name, element))
            }
            _ => Self::Scalar,
        }
    }
}

/// The element type of a view, a slice or a pointer; for a scalar, its own type.
pub fn element_of(ty: &Type) -> TokenStream {
    match ArgumentKind::of(ty) {
        ArgumentKind::Memory(_, element) => element.to_token_stream(),
        ArgumentKind::Scalar => ty.to_token_stream(),
    }
}

/// The expression that takes an argument of this type from the slots of a launch.
pub fn take(ty: &Type) -> TokenStream {
    match ArgumentKind::of(ty) {
        ArgumentKind::Memory(..) => quote!(slots.take()),
        ArgumentKind::Scalar => quote!(slots.take_scalar()),
    }
}

/// An argument struct.
pub struct ArgumentStruct<'a> {
    pub attributes: TokenStream,
    pub visibility: &'a Visibility,
    pub name: Ident,
    /// Type and const parameters.
    pub generics: Vec<GenericParam>,
    pub fields: Vec<Field>,
}

impl ArgumentStruct<'_> {
    /// Whether a field is a view, a slice or a pointer. The struct then has a lifetime and the type parameter `Side`.
    fn has_memory(&self) -> bool {
        self.fields.iter().any(|field| matches!(ArgumentKind::of(&field.ty), ArgumentKind::Memory(..)))
    }

    /// The struct's type with these generic arguments.
    fn ty(&self, lifetime: &TokenStream, arguments: &[TokenStream], side: Option<TokenStream>) -> TokenStream {
        let name = &self.name;
        let memory = self.has_memory().then(|| quote!(#lifetime,));
        let side = side.filter(|_| self.has_memory());
        quote!(#name<#memory #(#arguments,)* #side>)
    }

    /// The struct's type with the lifetime `'static`, as in the type of a handle.
    pub fn static_ty(&self, arguments: &[TokenStream]) -> TokenStream {
        self.ty(&quote!('static), arguments, None)
    }

    fn generic_arguments(&self) -> Vec<TokenStream> {
        self.generics.iter().map(argument_of).collect()
    }

    /// The definition of the struct.
    pub fn definition(&self) -> TokenStream {
        let Self { attributes, visibility, name, generics, fields } = self;
        let fields = fields.iter().map(|Field { attributes, visibility, name, ty }| {
            let ty = match ArgumentKind::of(ty) {
                ArgumentKind::Memory(associated_type, element) => {
                    let associated_type = format_ident!("{associated_type}");
                    quote!(Side::#associated_type<'launch, #element>)
                }
                ArgumentKind::Scalar => quote!(#ty),
            };
            quote!(#(#attributes)* #visibility #name: #ty)
        });
        let memory = self.has_memory();
        let lifetime = memory.then(|| quote!('launch,));
        let side = memory.then(|| quote!(Side: ::cuda_std::arguments::Side = ::cuda_std::arguments::Device));
        quote! {
            #attributes
            #visibility struct #name<#lifetime #(#generics,)* #side> {
                #(#fields,)*
            }
        }
    }

    /// The implementation of `Parameters`, with which the host visits the arguments.
    pub fn parameters(&self) -> TokenStream {
        let Self { name, generics, fields, .. } = self;
        let own = self.generic_arguments();
        let (ty, associated_type) = (self.static_ty(&own), self.ty(&quote!('launch), &own, Some(quote!(OnSide))));
        let names: Vec<&Ident> = fields.iter().map(|field| &field.name).collect();
        let descriptions = fields.iter().map(|Field { name, ty, .. }| {
            let (name, ty) = (name.unraw().to_string(), with_static_lifetimes(ty));
            match ArgumentKind::of(&ty) {
                ArgumentKind::Scalar => quote!(::cuda_std::launch::NamedParameter::scalar::<#ty>(#name)),
                ArgumentKind::Memory("Pointer" | "PointerMut", _) => {
                    quote!(::cuda_std::launch::NamedParameter::pointer::<#ty>(#name))
                }
                ArgumentKind::Memory(..) => quote!(::cuda_std::launch::NamedParameter::view::<#ty>(#name)),
            }
        });
        let visits = fields.iter().map(|Field { name, ty, .. }| match ArgumentKind::of(ty) {
            ArgumentKind::Memory(associated_type, element) => {
                let method = match associated_type {
                    "Global" => quote!(global),
                    "GlobalMut" => quote!(global_mut),
                    "Slice" => quote!(slice),
                    "Pointer" => quote!(pointer),
                    _ => quote!(pointer_mut),
                };
                quote!(visitor.#method::<#element>(#name);)
            }
            ArgumentKind::Scalar => quote!(visitor.scalar::<#ty>(#name);),
        });
        let names_of_generics: Vec<String> = own.iter().map(ToString::to_string).collect();
        // In instances these types are scalars. The generic struct needs a bound for that.
        let is_generic_scalar = |ty: &&Type| {
            matches!(ArgumentKind::of(ty), ArgumentKind::Scalar) && mentions(ty.to_token_stream(), &names_of_generics)
        };
        let scalars = fields.iter().map(|field| &field.ty).filter(is_generic_scalar);
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: the fields are in the order of the entry's parameters.
            unsafe impl<#(#generics),*> ::cuda_std::launch::Parameters for #ty
            where
                #(#scalars: ::cuda_std::launch::ScalarParameter,)*
            {
                const PARAMETERS: &'static [::cuda_std::launch::NamedParameter] = &[#(#descriptions),*];
                type On<'launch, OnSide: ::cuda_std::arguments::Side> = #associated_type;

                #[allow(unused_variables)]
                fn visit<'launch, OnSide: ::cuda_std::arguments::Side>(
                    arguments: Self::On<'launch, OnSide>,
                    visitor: &mut impl ::cuda_std::launch::Visitor<'launch, OnSide>,
                ) {
                    let #name { #(#names),* } = arguments;
                    #(#visits)*
                }
            }
        }
    }

    /// The implementation of `FromSlots`, with which the CPU makes the struct from the slots of a launch.
    fn slots_conversion(&self) -> TokenStream {
        let Self { generics, fields, .. } = self;
        let own = self.generic_arguments();
        let ty = self.ty(&quote!('launch), &own, None);
        let names = fields.iter().map(|field| &field.name);
        let takes = fields.iter().map(|field| take(&field.ty));
        quote! {
            #[cfg(not(target_arch = "nvptx64"))]
            // SAFETY: the fields are in the order of the entry's parameters.
            unsafe impl<'launch, #(#generics),*> ::cuda_std::launch::FromSlots<'launch> for #ty {
                type Args<Own> = Self;

                unsafe fn from_slots(slots: &mut ::cuda_std::launch::Slots<'launch>) -> Self {
                    // SAFETY: as promised by the caller.
                    unsafe { Self { #(#names: #takes,)* } }
                }
            }
        }
    }

    /// The implementation of `EntryInput`, with which a GPU makes the struct from the parameters of an entry.
    fn entry_input(&self) -> Result<TokenStream> {
        let Self { name, generics, fields, .. } = self;
        let own = self.generic_arguments();
        let ty = self.ty(&quote!('launch), &own, None);
        let (mut parameters, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for Field { name, ty, .. } in fields {
            let len = format_ident!("{}_len", name);
            match ArgumentKind::of(ty) {
                ArgumentKind::Memory(kind @ ("Global" | "GlobalMut" | "Slice"), element) => {
                    let view = match kind {
                        "Global" => quote!(::cuda_std::global::Global<'launch, #element>),
                        "GlobalMut" => quote!(::cuda_std::global::GlobalMut<'launch, #element>),
                        _ => quote!(&'launch [#element]),
                    };
                    types.push(if kind == "GlobalMut" { quote!(*mut #element) } else { quote!(*const #element) });
                    types.push(quote!(usize));
                    values.push(
                        quote!(#name: <#view as ::cuda_std::internal::AddressAndLength>::from_parts(#name, #len)),
                    );
                    parameters.extend([name.clone(), len]);
                }
                _ => {
                    types.push(quote!(#ty));
                    values.push(quote!(#name));
                    parameters.push(name.clone());
                }
            }
        }
        let Some(unused) = ENTRY_PARAMETERS.checked_sub(types.len()) else {
            let refused = format!(
                "an entry has at most {ENTRY_PARAMETERS} parameters, and this struct has {}: a view or a slice counts \
                 twice",
                types.len()
            );
            return Err(Error::new_spanned(name, refused));
        };
        parameters.extend((0..unused).map(|i| format_ident!("_unused_{i}")));
        types.extend((0..unused).map(|_| quote!(())));
        let names = entry_parameters();
        let unchecked = fields.iter().map(|field| &field.ty).filter(|ty| !is_known(ty));
        Ok(quote! {
            #[cfg(target_arch = "nvptx64")]
            impl<'launch, #(#generics),*> ::cuda_std::internal::EntryInput for #ty {
                #(type #names = #types;)*

                const CHECK: () = { #(::cuda_std::launch::assert_by_value::<#unchecked>();)* };

                #[inline(always)]
                #[allow(unused_unsafe)]
                unsafe fn from_parts(#(#parameters: #types),*) -> Self {
                    // SAFETY: as promised by the caller.
                    unsafe { Self { #(#values),* } }
                }
            }
        })
    }
}

/// The maximum number of parameters of an entry whose kernel has an argument struct: that of the types of `EntryInput`.
const ENTRY_PARAMETERS: usize = 64;

/// The names of the types of `EntryInput`.
pub fn entry_parameters() -> Vec<Ident> {
    (0..ENTRY_PARAMETERS).map(|i| format_ident!("P{i}")).collect()
}

/// Whether the tokens contain one of these names.
pub fn mentions(tokens: TokenStream, names: &[String]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.iter().any(|name| ident == name),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}

/// Expands `#[arguments]`.
pub fn arguments(item: &ItemStruct) -> Result<TokenStream> {
    let Fields::Named(named) = &item.fields else {
        return Err(Error::new_spanned(&item.ident, "an argument struct needs named fields"));
    };
    if let Some(clause) = &item.generics.where_clause {
        return Err(Error::new_spanned(clause, "write the bounds at the generic parameters, without `where`"));
    }
    for parameter in &item.generics.params {
        let refused = match parameter {
            GenericParam::Type(_) => continue,
            GenericParam::Lifetime(_) => "arguments live only for their launch: leave the lifetime out",
            GenericParam::Const(_) => "a constant is a generic parameter of the kernel, not of its arguments",
        };
        return Err(Error::new_spanned(parameter, refused));
    }
    let fields = named.named.iter().map(|field| {
        if let Some(lifetime) = named_lifetime(&field.ty) {
            return Err(Error::new_spanned(lifetime, NAMED_LIFETIME_ERROR));
        }
        Ok(Field {
            attributes: field.attrs.clone(),
            visibility: field.vis.clone(),
            name: field.ident.clone().expect("a named field has a name"),
            ty: without_parentheses(&field.ty).clone(),
        })
    });
    let attributes = &item.attrs;
    let arguments = ArgumentStruct {
        attributes: quote!(#(#attributes)*),
        visibility: &item.vis,
        name: item.ident.clone(),
        generics: item.generics.params.iter().cloned().collect(),
        fields: fields.collect::<Result<_>>()?,
    };
    if !arguments.has_memory() {
        let refused = "an argument struct needs a `Global` or `GlobalMut`: without one, its kernel has no effect";
        return Err(Error::new_spanned(&item.ident, refused));
    }
    let (definition, parameters) = (arguments.definition(), arguments.parameters());
    let (slots_conversion, entry_input) = (arguments.slots_conversion(), arguments.entry_input()?);
    Ok(quote!(#definition #parameters #slots_conversion #entry_input))
}
