//! The CUDA version that a driver implements.

use std::fmt;

/// The newest version of CUDA that a driver implements, for example 13.0.
///
/// This is the version of the driver API, as in "CUDA 13.0", not the version of the driver's own release, as in
/// "580.65". Versions are ordered from old to new.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// The 13 of 13.0.
    pub major: u32,
    /// The 0 of 13.0.
    pub minor: u32,
}

impl DriverVersion {
    /// Decodes the value of `cuDriverGetVersion`: 1000 times major plus 10 times minor.
    pub(crate) fn decode(encoded: u32) -> Self {
        Self { major: encoded / 1000, minor: encoded % 1000 / 10 }
    }
}

impl fmt::Display for DriverVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_and_prints() {
        assert_eq!(DriverVersion::decode(13000).to_string(), "13.0");
        assert_eq!(DriverVersion::decode(12080).to_string(), "12.8");
        assert_eq!(DriverVersion::decode(11040).to_string(), "11.4");
    }

    #[test]
    fn orders_by_age() {
        assert!(DriverVersion::decode(11080) < DriverVersion::decode(12000));
        assert!(DriverVersion::decode(12080) < DriverVersion::decode(12090));
    }
}
