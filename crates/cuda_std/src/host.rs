//! Items of a kernel crate that only the host uses.

/// Expands to its items on the host, and to nothing on a GPU. For items that name a kernel's handle, which exists only
/// on the host.
#[cfg(not(target_arch = "nvptx64"))]
#[macro_export]
macro_rules! on_host {
    ($($items:tt)*) => { $($items)* };
}

/// Expands to its items on the host, and to nothing on a GPU. For items that name a kernel's handle, which exists only
/// on the host.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
macro_rules! on_host {
    ($($items:tt)*) => {};
}
