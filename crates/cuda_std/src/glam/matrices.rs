//! Matrices of `f32` with two, three and four columns, in column-major order.

use core::ops::{Add, Mul, Sub};

use bytemuck::{Pod, Zeroable};

use super::{Vec2, Vec3, Vec4};
use crate::GpuFloat;

macro_rules! matrices {
    ($($(#[$doc:meta])* $name:ident: $count:literal columns of $column:ident, $($axis:ident $unit:ident),*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(missing_docs, reason = "the columns are the images of the axes")]
        #[repr(C)]
        pub struct $name {
            $(pub $axis: $column,)*
        }

        // SAFETY: of columns only, which are plain.
        unsafe impl Zeroable for $name {}
        // SAFETY: of columns of one type only, which are plain and lie side by side.
        unsafe impl Pod for $name {}

        impl $name {
            /// 0 everywhere.
            pub const ZERO: Self = Self { $($axis: $column::ZERO),* };
            /// 1 on the diagonal, 0 elsewhere.
            pub const IDENTITY: Self = Self { $($axis: $column::$unit),* };

            /// The matrix with these columns.
            #[inline(always)]
            pub const fn from_cols($($axis: $column),*) -> Self {
                Self { $($axis),* }
            }

            /// The matrix with these columns.
            #[inline(always)]
            pub const fn from_cols_array_2d(&[$($axis),*]: &[[f32; $count]; $count]) -> Self {
                Self { $($axis: $column::from_array($axis)),* }
            }

            /// The columns.
            #[inline(always)]
            pub const fn to_cols_array_2d(&self) -> [[f32; $count]; $count] {
                [$(self.$axis.to_array()),*]
            }

            /// The matrix with this diagonal, and 0 elsewhere.
            #[inline(always)]
            pub fn from_diagonal(diagonal: $column) -> Self {
                Self { $($axis: diagonal * $column::$unit),* }
            }

            /// The transpose: rows become columns.
            #[inline(always)]
            pub fn transpose(&self) -> Self {
                let columns = self.to_cols_array_2d();
                let row = |i: usize| $column::from_array(columns.map(|column| column[i]));
                let [$($axis),*] = core::array::from_fn(row);
                Self { $($axis),* }
            }
        }

        /// [`Self::IDENTITY`].
        impl Default for $name {
            #[inline(always)]
            fn default() -> Self {
                Self::IDENTITY
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self { $($axis: self.$axis + other.$axis),* }
            }
        }

        impl Sub for $name {
            type Output = Self;
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self { $($axis: self.$axis - other.$axis),* }
            }
        }

        impl Mul<f32> for $name {
            type Output = Self;
            #[inline(always)]
            fn mul(self, number: f32) -> Self {
                Self { $($axis: self.$axis * number),* }
            }
        }

        impl Mul for $name {
            type Output = Self;
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                Self { $($axis: self * other.$axis),* }
            }
        }
    )*};
}

matrices! {
    /// A matrix of two columns: 16 bytes.
    Mat2: 2 columns of Vec2, x_axis X, y_axis Y;
    /// A matrix of three columns: 36 bytes.
    Mat3: 3 columns of Vec3, x_axis X, y_axis Y, z_axis Z;
    /// A matrix of four columns: 64 bytes, at a multiple of 16.
    Mat4: 4 columns of Vec4, x_axis X, y_axis Y, z_axis Z, w_axis W;
}

impl Mul<Vec2> for Mat2 {
    type Output = Vec2;
    #[inline(always)]
    fn mul(self, v: Vec2) -> Vec2 {
        self.x_axis * v.x + self.y_axis * v.y
    }
}

impl Mul<Vec3> for Mat3 {
    type Output = Vec3;
    #[inline(always)]
    fn mul(self, v: Vec3) -> Vec3 {
        self.x_axis * v.x + self.y_axis * v.y + self.z_axis * v.z
    }
}

impl Mul<Vec4> for Mat4 {
    type Output = Vec4;
    #[inline(always)]
    fn mul(self, v: Vec4) -> Vec4 {
        self.x_axis * v.x + self.y_axis * v.y + self.z_axis * v.z + self.w_axis * v.w
    }
}

impl Mat2 {
    /// The determinant.
    #[inline(always)]
    pub fn determinant(&self) -> f32 {
        self.x_axis.x * self.y_axis.y - self.x_axis.y * self.y_axis.x
    }

    /// The counterclockwise rotation by an angle in radians.
    #[inline]
    pub fn from_angle(angle: f32) -> Self {
        let (sin, cos) = GpuFloat::sin_cos(angle);
        Self::from_cols(Vec2::new(cos, sin), Vec2::new(-sin, cos))
    }
}

impl Mat3 {
    /// The determinant.
    #[inline(always)]
    pub fn determinant(&self) -> f32 {
        self.z_axis.dot(self.x_axis.cross(self.y_axis))
    }

    /// The first three rows and columns of a matrix of four.
    #[inline(always)]
    pub const fn from_mat4(m: Mat4) -> Self {
        Self::from_cols(m.x_axis.truncate(), m.y_axis.truncate(), m.z_axis.truncate())
    }

    /// The rotation about an axis of length 1 by an angle in radians, by the right-hand rule (Rodrigues' formula).
    #[inline]
    pub fn from_axis_angle(axis: Vec3, angle: f32) -> Self {
        let (sin, cos) = GpuFloat::sin_cos(angle);
        let Vec3 { x, y, z } = axis * sin;
        let (xy, xz, yz) =
            (axis.x * axis.y * (1.0 - cos), axis.x * axis.z * (1.0 - cos), axis.y * axis.z * (1.0 - cos));
        let diagonal = axis * axis * (1.0 - cos) + cos;
        Self::from_cols(
            Vec3::new(diagonal.x, xy + z, xz - y),
            Vec3::new(xy - z, diagonal.y, yz + x),
            Vec3::new(xz + y, yz - x, diagonal.z),
        )
    }
}

impl Mat4 {
    /// The determinant, by the 2 x 2 determinants of the first two columns and of the last two (Laplace's expansion).
    #[inline]
    pub fn determinant(&self) -> f32 {
        let [a, b, c, d] = self.to_cols_array_2d();
        let minor = |a: [f32; 4], b: [f32; 4], i: usize, j: usize| a[i] * b[j] - a[j] * b[i];
        let product = |i, j, k, l| minor(a, b, i, j) * minor(c, d, k, l);
        product(0, 1, 2, 3) - product(0, 2, 1, 3) + product(0, 3, 1, 2) + product(1, 2, 0, 3) - product(1, 3, 0, 2)
            + product(2, 3, 0, 1)
    }

    /// The translation by a vector.
    #[inline(always)]
    pub const fn from_translation(by: Vec3) -> Self {
        Self { w_axis: by.extend(1.0), ..Self::IDENTITY }
    }

    /// The scaling by three factors.
    #[inline(always)]
    pub fn from_scale(factors: Vec3) -> Self {
        Self::from_diagonal(factors.extend(1.0))
    }

    /// The rotation about an axis of length 1 by an angle in radians, by the right-hand rule.
    #[inline]
    pub fn from_axis_angle(axis: Vec3, angle: f32) -> Self {
        let Mat3 { x_axis, y_axis, z_axis } = Mat3::from_axis_angle(axis, angle);
        Self::from_cols(x_axis.extend(0.0), y_axis.extend(0.0), z_axis.extend(0.0), Vec4::W)
    }

    /// The point `p` after this transformation, which must be affine: the last row is 0, 0, 0, 1.
    #[inline(always)]
    pub fn transform_point3(&self, p: Vec3) -> Vec3 {
        (self.x_axis * p.x + self.y_axis * p.y + self.z_axis * p.z + self.w_axis).truncate()
    }

    /// The direction `v` after this transformation, which must be affine: the last row is 0, 0, 0, 1.
    #[inline(always)]
    pub fn transform_vector3(&self, v: Vec3) -> Vec3 {
        (self.x_axis * v.x + self.y_axis * v.y + self.z_axis * v.z).truncate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_their_columns() {
        assert_eq!((size_of::<Mat2>(), align_of::<Mat2>()), (16, 8));
        assert_eq!((size_of::<Mat3>(), align_of::<Mat3>()), (36, 4));
        assert_eq!((size_of::<Mat4>(), align_of::<Mat4>()), (64, 16));
    }

    #[test]
    fn products_with_vectors_and_matrices() {
        let m = Mat2::from_cols(Vec2::new(1.0, 2.0), Vec2::new(3.0, 4.0));
        assert_eq!(m * Vec2::new(10.0, 100.0), Vec2::new(310.0, 420.0));
        assert_eq!(m.transpose().to_cols_array_2d(), [[1.0, 3.0], [2.0, 4.0]]);
        assert_eq!((m * m).to_cols_array_2d(), [[7.0, 10.0], [15.0, 22.0]]);
        assert_eq!((m + Mat2::IDENTITY * 2.0 - Mat2::ZERO).to_cols_array_2d(), [[3.0, 2.0], [3.0, 6.0]]);
        let n = Mat3::from_cols_array_2d(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]);
        assert_eq!(n * Vec3::new(1.0, 10.0, 100.0), Vec3::new(741.0, 852.0, 1063.0));
        assert_eq!(n.transpose() * Vec3::X, Vec3::new(1.0, 4.0, 7.0));
        assert_eq!(n * Mat3::default(), n);
        assert_eq!(Mat3::from_diagonal(Vec3::new(2.0, 3.0, 4.0)) * Vec3::ONE, Vec3::new(2.0, 3.0, 4.0));
    }

    #[test]
    fn determinants() {
        assert_eq!(Mat2::from_cols(Vec2::new(1.0, 2.0), Vec2::new(3.0, 4.0)).determinant(), -2.0);
        let n = Mat3::from_cols_array_2d(&[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 10.0]]);
        assert_eq!(n.determinant(), -3.0);
        let m = [[2.0, 1.0, 3.0, 0.0], [0.0, 4.0, 1.0, 5.0], [6.0, 0.0, 7.0, 2.0], [1.0, 8.0, 0.0, 9.0]];
        assert_eq!(Mat4::from_cols_array_2d(&m).determinant(), by_the_first_column(&m));
        assert_eq!(Mat4::from_cols_array_2d(&m).transpose().determinant(), by_the_first_column(&m));
    }

    /// The determinant of whole numbers, by another expansion.
    fn by_the_first_column(m: &[[f32; 4]; 4]) -> f32 {
        let without = |i: usize| {
            let column = |k: usize| {
                let mut rest = (0..4).filter(|&row| row != i).map(|row| m[k][row]);
                [(); 3].map(|()| rest.next().unwrap())
            };
            Mat3::from_cols_array_2d(&[column(1), column(2), column(3)]).determinant()
        };
        m[0][0] * without(0) - m[0][1] * without(1) + m[0][2] * without(2) - m[0][3] * without(3)
    }

    #[test]
    fn transformations() {
        let m = Mat4::from_translation(Vec3::new(1.0, 2.0, 3.0)) * Mat4::from_scale(Vec3::new(2.0, 3.0, 0.5));
        assert_eq!(m.transform_point3(Vec3::new(1.0, -1.0, 4.0)), Vec3::new(3.0, -1.0, 5.0));
        assert_eq!(m.transform_vector3(Vec3::new(1.0, -1.0, 4.0)), Vec3::new(2.0, -3.0, 2.0));
        assert_eq!((m.determinant(), Mat3::from_mat4(m).determinant()), (3.0, 3.0));
    }

    #[test]
    fn rotations_are_right_handed() {
        for i in 0..50 {
            let angle = i as f32 * 0.25 - 6.0;
            let (sin, cos) = GpuFloat::sin_cos(angle);
            assert_eq!(Mat2::from_angle(angle) * Vec2::X, Vec2::new(cos, sin));
            // Each axis turns the next one towards the one after it.
            for [axis, next, last] in
                [[Vec3::X, Vec3::Y, Vec3::Z], [Vec3::Y, Vec3::Z, Vec3::X], [Vec3::Z, Vec3::X, Vec3::Y]]
            {
                let turned = Mat3::from_axis_angle(axis, angle);
                assert!((turned * next).distance(next * cos + last * sin) < 1e-6, "{angle} about {axis:?}");
                assert!((turned * axis).distance(axis) < 1e-6, "{angle} about {axis:?}");
                assert_eq!(Mat4::from_axis_angle(axis, angle).transform_vector3(next), turned * next);
            }
            // Lengths and volumes stay.
            let turned = Mat3::from_axis_angle(Vec3::new(2.0, 3.0, 6.0).normalize(), angle);
            assert!((turned.determinant() - 1.0).abs() < 1e-5);
            assert!((turned * Vec3::new(2.0, 3.0, 6.0)).distance(Vec3::new(2.0, 3.0, 6.0)) < 1e-5);
        }
    }
}
