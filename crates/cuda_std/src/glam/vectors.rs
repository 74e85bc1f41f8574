//! Vectors of two, three and four `f32`.

use core::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

use bytemuck::{Pod, Zeroable};

use crate::GpuFloat;

macro_rules! vectors {
    ($($(#[$attribute:meta])* $name:ident: $count:literal, $($axis:ident $unit:ident),*;)*) => {$(
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[allow(missing_docs, reason = "the components are x, y, z and w")]
        pub struct $name {
            $(pub $axis: f32,)*
        }

        // SAFETY: of floats only, for which every bit pattern is a value.
        unsafe impl Zeroable for $name {}
        // SAFETY: of floats only, without padding: the size is a multiple of the alignment.
        unsafe impl Pod for $name {}

        impl $name {
            /// 0 in every component.
            pub const ZERO: Self = Self::splat(0.0);
            /// 1 in every component.
            pub const ONE: Self = Self::splat(1.0);
            $(
                /// The unit vector of this axis.
                pub const $unit: Self = Self { $axis: 1.0, ..Self::ZERO };
            )*

            /// The vector with these components.
            #[inline(always)]
            pub const fn new($($axis: f32),*) -> Self {
                Self { $($axis),* }
            }

            /// The vector with the same number in every component.
            #[inline(always)]
            pub const fn splat(number: f32) -> Self {
                Self { $($axis: number),* }
            }

            /// The vector with these components, x first.
            #[inline(always)]
            pub const fn from_array([$($axis),*]: [f32; $count]) -> Self {
                Self { $($axis),* }
            }

            /// The components, x first.
            #[inline(always)]
            pub const fn to_array(self) -> [f32; $count] {
                [$(self.$axis),*]
            }

            /// The sum of the products of the components, added from x on.
            #[inline(always)]
            pub fn dot(self, other: Self) -> f32 {
                (self * other).element_sum()
            }

            /// The sum of the components, added from x on.
            #[inline(always)]
            pub fn element_sum(self) -> f32 {
                let [first, rest @ ..] = self.to_array();
                rest.into_iter().fold(first, |sum, component| sum + component)
            }

            /// The length.
            #[inline(always)]
            pub fn length(self) -> f32 {
                GpuFloat::sqrt(self.length_squared())
            }

            /// The square of the length.
            #[inline(always)]
            pub fn length_squared(self) -> f32 {
                self.dot(self)
            }

            /// The distance between two points.
            #[inline(always)]
            pub fn distance(self, other: Self) -> f32 {
                (self - other).length()
            }

            /// The vector of length 1 in this direction. Its components are infinite or NaN if the length is 0.
            #[inline(always)]
            pub fn normalize(self) -> Self {
                self * (1.0 / self.length())
            }

            /// `self` at 0, `other` at 1, and points on their line elsewhere.
            #[inline(always)]
            pub fn lerp(self, other: Self, at: f32) -> Self {
                self * (1.0 - at) + other * at
            }

            /// A ray of this direction, reflected by a surface with this normal of length 1.
            #[inline(always)]
            pub fn reflect(self, normal: Self) -> Self {
                self - normal * (2.0 * self.dot(normal))
            }

            /// `f` of each two components.
            #[inline(always)]
            fn by_components(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
                Self { $($axis: f(self.$axis, other.$axis)),* }
            }

            /// The smaller number of each two components; of NaN and a number, the number.
            #[inline(always)]
            pub fn min(self, other: Self) -> Self {
                self.by_components(other, f32::min)
            }

            /// The larger number of each two components; of NaN and a number, the number.
            #[inline(always)]
            pub fn max(self, other: Self) -> Self {
                self.by_components(other, f32::max)
            }

            /// The absolute values of the components.
            #[inline(always)]
            pub fn abs(self) -> Self {
                Self { $($axis: GpuFloat::abs(self.$axis)),* }
            }
        }

        impl Neg for $name {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Self { $($axis: -self.$axis),* }
            }
        }

        impl Mul<$name> for f32 {
            type Output = $name;
            #[inline(always)]
            fn mul(self, vector: $name) -> $name {
                vector * self
            }
        }

        impl From<[f32; $count]> for $name {
            #[inline(always)]
            fn from(components: [f32; $count]) -> Self {
                Self::from_array(components)
            }
        }

        impl From<$name> for [f32; $count] {
            #[inline(always)]
            fn from(vector: $name) -> Self {
                vector.to_array()
            }
        }
    )*};
}

vectors! {
    /// A vector of two floats, with the layout of CUDA's `float2`: 8 bytes, at a multiple of 8.
    #[repr(C, align(8))]
    Vec2: 2, x X, y Y;
    /// A vector of three floats, with the layout of CUDA's `float3`: 12 bytes, at a multiple of 4.
    #[repr(C)]
    Vec3: 3, x X, y Y, z Z;
    /// A vector of four floats, with the layout of CUDA's `float4`: 16 bytes, at a multiple of 16.
    #[repr(C, align(16))]
    Vec4: 4, x X, y Y, z Z, w W;
}

/// An operator by components: with another vector, and with one number for all components.
macro_rules! operator {
    ($operator:ident, $function:ident, $assign:ident, $assign_function:ident; $($name:ident),*) => {$(
        impl $operator for $name {
            type Output = Self;
            #[inline(always)]
            fn $function(self, other: Self) -> Self {
                self.by_components(other, $operator::$function)
            }
        }

        impl $operator<f32> for $name {
            type Output = Self;
            #[inline(always)]
            fn $function(self, number: f32) -> Self {
                self.$function(Self::splat(number))
            }
        }

        impl $assign for $name {
            #[inline(always)]
            fn $assign_function(&mut self, other: Self) {
                *self = self.$function(other);
            }
        }

        impl $assign<f32> for $name {
            #[inline(always)]
            fn $assign_function(&mut self, number: f32) {
                *self = self.$function(number);
            }
        }
    )*};
}

operator! { Add, add, AddAssign, add_assign; Vec2, Vec3, Vec4 }
operator! { Sub, sub, SubAssign, sub_assign; Vec2, Vec3, Vec4 }
operator! { Mul, mul, MulAssign, mul_assign; Vec2, Vec3, Vec4 }
operator! { Div, div, DivAssign, div_assign; Vec2, Vec3, Vec4 }

impl Vec2 {
    /// The vector with these components and `z`.
    #[inline(always)]
    pub const fn extend(self, z: f32) -> Vec3 {
        Vec3::new(self.x, self.y, z)
    }
}

impl Vec3 {
    /// The vector that is orthogonal to both, by the right-hand rule.
    #[inline(always)]
    pub fn cross(self, other: Self) -> Self {
        Self {
            x: self.y * other.z - other.y * self.z,
            y: self.z * other.x - other.z * self.x,
            z: self.x * other.y - other.x * self.y,
        }
    }

    /// The vector with these components and `w`.
    #[inline(always)]
    pub const fn extend(self, w: f32) -> Vec4 {
        Vec4::new(self.x, self.y, self.z, w)
    }

    /// The components x and y.
    #[inline(always)]
    pub const fn truncate(self) -> Vec2 {
        Vec2::new(self.x, self.y)
    }
}

impl Vec4 {
    /// The components x, y and z.
    #[inline(always)]
    pub const fn truncate(self) -> Vec3 {
        Vec3::new(self.x, self.y, self.z)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_cuda() {
        assert_eq!((size_of::<Vec2>(), align_of::<Vec2>()), (8, 8));
        assert_eq!((size_of::<Vec3>(), align_of::<Vec3>()), (12, 4));
        assert_eq!((size_of::<Vec4>(), align_of::<Vec4>()), (16, 16));
    }

    #[test]
    fn operators_take_vectors_and_numbers() {
        let (a, b) = (Vec3::new(1.0, 2.0, 3.0), Vec3::new(4.0, -5.0, 0.5));
        assert_eq!([a + b, a - b], [Vec3::new(5.0, -3.0, 3.5), Vec3::new(-3.0, 7.0, 2.5)]);
        assert_eq!([a * b, a / b], [Vec3::new(4.0, -10.0, 1.5), Vec3::new(0.25, -0.4, 6.0)]);
        assert_eq!([a + 1.0, a - 1.0], [Vec3::new(2.0, 3.0, 4.0), Vec3::new(0.0, 1.0, 2.0)]);
        assert_eq!([a * 2.0, 2.0 * a, -a / -0.5], [Vec3::new(2.0, 4.0, 6.0); 3]);
        let mut c = a;
        c += b;
        c -= 1.0;
        c *= Vec3::new(1.0, 2.0, 3.0);
        c /= 4.0;
        assert_eq!(c.to_array(), [1.0, -2.0, 1.875]);
    }

    #[test]
    fn functions_of_vectors() {
        let (a, b) = (Vec3::new(2.0, 3.0, 6.0), Vec3::new(-1.0, 4.0, 0.5));
        assert_eq!((a.dot(b), a.length(), a.length_squared(), a.element_sum()), (13.0, 7.0, 49.0, 11.0));
        assert_eq!(a.cross(b), Vec3::new(-22.5, -7.0, 11.0));
        let inverse = 1.0 / 7.0;
        assert_eq!(a.normalize(), Vec3::new(2.0 * inverse, 3.0 * inverse, 6.0 * inverse));
        assert_eq!(Vec2::new(1.0, 2.0).distance(Vec2::new(4.0, 6.0)), 5.0);
        assert_eq!(a.lerp(b, 0.0), a);
        assert_eq!(a.lerp(b, 0.5), Vec3::new(0.5, 3.5, 3.25));
        assert_eq!(Vec3::new(1.0, -1.0, 0.0).reflect(Vec3::Y), Vec3::new(1.0, 1.0, 0.0));
        let with_nan = Vec4::new(f32::NAN, -1.0, 3.0, -0.5);
        assert_eq!(with_nan.min(Vec4::ONE), Vec4::new(1.0, -1.0, 1.0, -0.5));
        assert_eq!(with_nan.max(Vec4::ONE), Vec4::new(1.0, 1.0, 3.0, 1.0));
        assert_eq!(b.abs(), Vec3::new(1.0, 4.0, 0.5));
        assert_eq!(b.truncate().extend(2.0).extend(3.0).truncate(), Vec3::new(-1.0, 4.0, 2.0));
    }

    /// Vectors of SIMD add in another order.
    #[test]
    fn sums_of_components_begin_with_x() {
        let v = Vec4::new(1e8, 1.0, -1e8, 1.0);
        assert_eq!((v.dot(Vec4::ONE), v.element_sum()), (1.0, 1.0));
    }
}
