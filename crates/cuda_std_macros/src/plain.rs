//! Expands `#[derive(Plain)]`, which implements `bytemuck::Pod` for a struct. Types that are `Pod` are plain.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Data, DeriveInput, Error, Result};

/// Expands the derive macro. The expansion checks that the fields are plain, and that the struct has no padding.
pub fn plain(item: &DeriveInput) -> Result<TokenStream> {
    let Data::Struct(data) = &item.data else {
        let refused = "only a struct can be plain: an enum has invalid bits, and a union may have padding";
        return Err(Error::new_spanned(&item.ident, refused));
    };
    if !item.generics.params.is_empty() {
        let refused =
            "a generic struct's padding depends on its parameters: implement `bytemuck::Pod` for the types in use";
        return Err(Error::new_spanned(&item.generics, refused));
    }
    if !item.attrs.iter().any(has_fixed_layout) {
        let refused = "the struct's layout is not fixed: add `#[repr(C)]` or `#[repr(transparent)]`";
        return Err(Error::new_spanned(&item.ident, refused));
    }
    let name = &item.ident;
    let types = data.fields.iter().map(|field| &field.ty);
    let padding = format!(
        "`{name}` has padding, whose bytes are undefined: order the fields by size, or add fields of zeros in its place"
    );
    Ok(quote! {
        const _: () = {
            const fn size_of_plain<T: ::cuda_std::bytemuck::Pod>() -> usize {
                ::core::mem::size_of::<T>()
            }
            assert!(::core::mem::size_of::<#name>() == 0 #(+ size_of_plain::<#types>())*, #padding);
        };

        // SAFETY: all fields are plain, so zeros are valid values of them.
        unsafe impl ::cuda_std::bytemuck::Zeroable for #name {}
        // SAFETY: all fields are plain, and the assertion above excludes padding.
        unsafe impl ::cuda_std::bytemuck::Pod for #name {}
    })
}

/// Whether the attribute is a `repr` with `C` or `transparent`.
fn has_fixed_layout(attribute: &Attribute) -> bool {
    let mut is_fixed = false;
    if attribute.path().is_ident("repr") {
        // The compiler reports errors in other arguments, such as `align(16)`.
        let _ = attribute.parse_nested_meta(|meta| {
            is_fixed |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.input.peek(syn::token::Paren) {
                let arguments;
                syn::parenthesized!(arguments in meta.input);
                arguments.parse::<TokenStream>()?;
            }
            Ok(())
        });
    }
    is_fixed
}
