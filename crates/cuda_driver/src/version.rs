//! The CUDA version that a driver implements.

use std::fmt;

/// The newest version of CUDA that a driver implements, for example 13.0.
///
/// This is the version of the driver API, as in "CUDA 13.0", not the driver's release, as in "580.65". Older versions
/// compare as less than newer ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriverVersion {
    /// The major version: 13 for 13.0.
    pub major: u32,
    /// The minor version: 0 for 13.0.
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
    fn versions_are_decoded_and_displayed() {
        assert_eq!(DriverVersion::decode(13000).to_string(), "13.0");
        assert_eq!(DriverVersion::decode(12080).to_string(), "12.8");
        assert_eq!(DriverVersion::decode(11040).to_string(), "11.4");
    }

    #[test]
    fn older_versions_are_less() {
        assert!(DriverVersion::decode(11080) < DriverVersion::decode(12000));
        assert!(DriverVersion::decode(12080) < DriverVersion::decode(12090));
    }
}
