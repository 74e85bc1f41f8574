//! The indices and shapes of threads and blocks along two or three axes.

use core::ops::{Add, Mul};

use bytemuck::{Pod, Zeroable};

macro_rules! vectors {
    ($($(#[$attribute:meta])* $name:ident: $count:literal, $($axis:ident),*;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[allow(missing_docs, reason = "the axes are x, y and z")]
        pub struct $name {
            $(pub $axis: u32,)*
        }

        // SAFETY: of integers only, for which every bit pattern is a value.
        unsafe impl Zeroable for $name {}
        // SAFETY: of integers only, without padding: the size is a multiple of the alignment.
        unsafe impl Pod for $name {}

        impl $name {
            /// 0 along every axis.
            pub const ZERO: Self = Self { $($axis: 0),* };
            /// 1 along every axis.
            pub const ONE: Self = Self { $($axis: 1),* };

            /// The vector with these components.
            #[inline(always)]
            pub const fn new($($axis: u32),*) -> Self {
                Self { $($axis),* }
            }

            /// 0 along every axis, as a function.
            #[inline(always)]
            pub const fn zero() -> Self {
                Self::ZERO
            }

            /// The components, x first.
            #[inline(always)]
            pub const fn to_array(self) -> [u32; $count] {
                [$(self.$axis),*]
            }

            /// The product of the components, such as the number of threads in a block. Wraps.
            #[inline(always)]
            pub const fn element_product(self) -> u32 {
                1_u32$(.wrapping_mul(self.$axis))*
            }

            /// [`Self::element_product`], under its other name in Rust-CUDA.
            #[inline(always)]
            pub const fn product(self) -> u32 {
                self.element_product()
            }
        }

        /// Wraps.
        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self { $($axis: self.$axis.wrapping_add(other.$axis)),* }
            }
        }

        /// By components; wraps.
        impl Mul for $name {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self { $($axis: self.$axis.wrapping_mul(other.$axis)),* }
            }
        }

        impl From<$name> for [u32; $count] {
            #[inline(always)]
            fn from(vector: $name) -> Self {
                vector.to_array()
            }
        }

        impl From<[u32; $count]> for $name {
            #[inline(always)]
            fn from([$($axis),*]: [u32; $count]) -> Self {
                Self { $($axis),* }
            }
        }

        #[cfg(feature = "glam")]
        impl From<$name> for glam::$name {
            #[inline(always)]
            fn from(vector: $name) -> Self {
                Self::from_array(vector.to_array())
            }
        }

        #[cfg(feature = "glam")]
        impl From<glam::$name> for $name {
            #[inline(always)]
            fn from(vector: glam::$name) -> Self {
                Self::from(vector.to_array())
            }
        }
    )*};
}

vectors! {
    /// An index or a shape with components x and y, with the layout of CUDA's `uint2`: 8 bytes, at a multiple of 8.
    #[repr(C, align(8))]
    UVec2: 2, x, y;
    /// An index or a shape with components x, y and z, with the layout of CUDA's `uint3`: 12 bytes, at a multiple of 4.
    #[repr(C)]
    UVec3: 3, x, y, z;
}

impl UVec3 {
    /// The components x and y.
    #[inline(always)]
    pub const fn truncate(self) -> UVec2 {
        UVec2::new(self.x, self.y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_cuda() {
        assert_eq!((size_of::<UVec2>(), align_of::<UVec2>()), (8, 8));
        assert_eq!((size_of::<UVec3>(), align_of::<UVec3>()), (12, 4));
        assert_eq!(bytemuck::cast::<_, [u32; 2]>(UVec2::new(1, 2)), [1, 2]);
    }

    #[test]
    fn components_are_in_order() {
        let v = UVec3::from([1, 2, 3]);
        assert_eq!((v.x, v.y, v.z, v.product(), v.truncate()), (1, 2, 3, 6, UVec2::new(1, 2)));
        assert_eq!((v * UVec3::new(2, 3, 4) + UVec3::ONE).to_array(), [3, 7, 13]);
        assert_eq!(UVec2::new(u32::MAX, 2).element_product(), u32::MAX - 1);
    }
}
