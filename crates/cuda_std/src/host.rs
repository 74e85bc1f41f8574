//! Items of a kernel crate that only the host uses.

/// Expands to its items on the host, and to nothing on a GPU: what names a kernel's handle, which a GPU does not have.
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! on_host {
    ($($items:tt)*) => { $($items)* };
}

/// Expands to its items on the host, and to nothing on a GPU: what names a kernel's handle, which a GPU does not have.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! on_host {
    ($($items:tt)*) => {};
}
