//! `#[derive(DeviceCopy)]`, for [`cust`](../cust/index.html).

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, GenericParam, Type, parse_macro_input, parse_quote};

/// Implements `cust::memory::DeviceCopy` for a struct, an enum or a union whose fields all implement it.
///
/// Each type parameter gets the bound `DeviceCopy`. The type must also implement `Copy`.
#[proc_macro_derive(DeviceCopy)]
pub fn derive_device_copy(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    expand(&parse_macro_input!(input as DeriveInput)).into()
}

fn expand(input: &DeriveInput) -> TokenStream {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    for parameter in &mut generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::cust::memory::DeviceCopy));
        }
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let fields = fields(&input.data);
    quote! {
        // SAFETY: all fields are plain bits without references to host memory, as checked below. So is the type.
        #[automatically_derived]
        #[allow(clippy::multiple_bound_locations)]
        unsafe impl #impl_generics ::cust::memory::DeviceCopy for #name #type_generics #where_clause {}

        const _: () = {
            fn device_copy<FieldType: ?::core::marker::Sized + ::cust::memory::DeviceCopy>() {}

            #[allow(
                dead_code,
                clippy::extra_unused_lifetimes,
                clippy::extra_unused_type_parameters,
                clippy::multiple_bound_locations
            )]
            fn every_field_is_device_copy #impl_generics () #where_clause {
                #(device_copy::<#fields>();)*
            }
        };
    }
}

/// The types of all fields, in all variants.
fn fields(data: &Data) -> Vec<&Type> {
    match data {
        Data::Struct(data) => data.fields.iter().map(|field| &field.ty).collect(),
        Data::Enum(data) => data.variants.iter().flat_map(|variant| &variant.fields).map(|field| &field.ty).collect(),
        Data::Union(data) => data.fields.named.iter().map(|field| &field.ty).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(input: DeriveInput) -> String {
        expand(&input).to_string()
    }

    #[test]
    fn every_field_of_every_variant_is_checked() {
        let text = expanded(parse_quote! {
            enum Shape { Empty, Circle(Radius), Box { width: Width, height: Height } }
        });
        for field in ["Radius", "Width", "Height"] {
            assert!(text.contains(&format!("device_copy :: < {field} > ()")), "{text}");
        }
    }

    #[test]
    fn only_type_parameters_get_the_bound() {
        let text = expanded(parse_quote! { struct Array<'a, T: Clone, const N: usize>(&'a [T; N]) where T: Send; });
        assert!(text.contains("T : Clone + :: cust :: memory :: DeviceCopy"), "{text}");
        assert!(text.contains("for Array < 'a , T , N > where T : Send"), "{text}");
    }
}
