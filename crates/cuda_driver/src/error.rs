//! The errors of loading a driver.

use std::fmt;
use std::path::PathBuf;

use crate::load::MAIN_LIBRARY;

/// The error of [`load`](crate::load()): no usable driver was found.
///
/// A driver may load on a machine without a GPU. In that case `cuInit` returns an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No driver library could be opened.
    #[error("found no CUDA driver, {MAIN_LIBRARY} ({}); install the NVIDIA driver", join(.tried))]
    NoDriver {
        /// The libraries that were tried, in order.
        tried: Vec<Attempt>,
    },

    /// A library was opened, but it lacks a function that every driver has.
    #[error("{} is not a CUDA driver: it has no function `{missing}`", .path.display())]
    NotADriver {
        /// The library.
        path: PathBuf,
        /// The missing function.
        missing: &'static str,
    },

    /// The library is the CUDA toolkit's stub, which exists only for linking.
    #[error(
        "{} is the CUDA toolkit's stub for linking, not a driver; remove its folder from \
         LD_LIBRARY_PATH, or install the NVIDIA driver",
        .path.display()
    )]
    StubLibrary {
        /// The library.
        path: PathBuf,
    },

    /// The driver does not report the version of CUDA that it implements.
    #[error(
        "the CUDA driver {} did not report its version: cuDriverGetVersion returned {code}",
        .path.display()
    )]
    NoVersion {
        /// The library.
        path: PathBuf,
        /// The [`CUresult`](crate::CUresult) that `cuDriverGetVersion` returned, as a number.
        code: u32,
    },
}

/// A library that [`load`](crate::load()) could not open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The name or path of the library.
    pub library: String,
    /// Why it could not be opened.
    pub reason: String,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.library, self.reason)
    }
}

fn join(attempts: &[Attempt]) -> String {
    let lines: Vec<String> = attempts.iter().map(Attempt::to_string).collect();
    lines.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_driver_lists_the_tried_libraries_and_the_remedy() {
        let attempt = |library: &str| Attempt { library: library.into(), reason: "no such file".into() };
        let error = LoadError::NoDriver { tried: vec![attempt("libcuda.so.1"), attempt("libcuda.so")] };
        assert_eq!(
            error.to_string(),
            format!(
                "found no CUDA driver, {MAIN_LIBRARY} (libcuda.so.1: no such file; libcuda.so: no such file); install \
                 the NVIDIA driver"
            )
        );
    }
}
