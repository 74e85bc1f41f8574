//! Arrays of any rank: a layout, and memory that has its elements.
//!
//! A [`Layout`] is plain data: extents, strides and an offset. An [`ArrayView`] and an [`ArrayViewMut`] are a layout of
//! a view's elements, and an [`Array`] owns its elements, without gaps.

mod checks;
mod into_view;
mod layout;
#[cfg(feature = "ndarray")]
mod ndarray;
mod owned;
mod view;

pub(crate) use checks::{SECOND_INPUT, TARGET, broadcast, check_apart, same_extents};
pub use into_view::{IntoArrayView, IntoArrayViewMut};
pub(crate) use layout::distinct;
pub use layout::{Layout, MAX_RANK};
pub use owned::Array;
pub use view::{ArrayView, ArrayViewMut};
