//! The architectures that PTX is made for.

use std::fmt;
use std::str::FromStr;

/// A GPU architecture, by its compute capability: `sm_90` is 9.0. Its PTX runs on it and on all later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch(u32);

impl Arch {
    /// Turing. The oldest that CUDA 13 supports.
    pub const SM_75: Self = Self(75);
    /// Ampere, data centre (A100).
    pub const SM_80: Self = Self(80);
    /// Ampere.
    pub const SM_86: Self = Self(86);
    /// Ada Lovelace.
    pub const SM_89: Self = Self(89);
    /// Hopper (H100, H200).
    pub const SM_90: Self = Self(90);
    /// Blackwell, data centre.
    pub const SM_100: Self = Self(100);
    /// Blackwell.
    pub const SM_120: Self = Self(120);

    /// All architectures, oldest first.
    pub const ALL: [Self; 7] =
        [Self::SM_75, Self::SM_80, Self::SM_86, Self::SM_89, Self::SM_90, Self::SM_100, Self::SM_120];

    /// The compute capability without its dot: 90 for `sm_90`.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.0)
    }
}

/// The error of an unknown name of an architecture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown architecture `{name}`: choose from {}", Arch::ALL.map(|arch| arch.to_string()).join(", "))]
pub struct UnknownArch {
    /// The name.
    pub name: String,
}

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        Self::ALL.into_iter().find(|arch| arch.to_string() == name).ok_or_else(|| UnknownArch { name: name.to_owned() })
    }
}

/// Parses a list of architectures joined by commas; `none` is the empty list.
pub(crate) fn parse_list(names: &str) -> Result<Vec<Arch>, UnknownArch> {
    match names.trim() {
        "none" => Ok(Vec::new()),
        names => names.split(',').map(|name| name.trim().parse()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_architectures_are_one_to_one() {
        for arch in Arch::ALL {
            assert_eq!(arch.to_string().parse(), Ok(arch));
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let message = "sm_70".parse::<Arch>().unwrap_err().to_string();
        assert!(message.contains("`sm_70`") && message.contains("sm_75, sm_80"), "{message}");
    }

    #[test]
    fn lists_are_joined_by_commas() {
        assert_eq!(parse_list("sm_80, sm_90"), Ok(vec![Arch::SM_80, Arch::SM_90]));
        assert_eq!(parse_list("none"), Ok(Vec::new()));
        assert!(parse_list("").is_err() && parse_list("sm_80,none").is_err());
    }
}
