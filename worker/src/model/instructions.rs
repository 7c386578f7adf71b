//! Which vector instructions the kernels use; every choice gives the same bits.

use std::sync::OnceLock;

/// A set of instructions that this machine is known to have: values come only from the constructors below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instructions(Set);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Instructions {
    /// The fastest set of this machine, detected once.
    pub fn best() -> Self {
        static BEST: OnceLock<Instructions> = OnceLock::new();
        *BEST.get_or_init(|| Self::supported()[0])
    }

    /// All sets of this machine, fastest first; the last is always the plain one.
    pub fn supported() -> Vec<Self> {
        let mut sets = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                sets.push(Self(Set::Avx512));
            }
            if avx2 {
                sets.push(Self(Set::Avx2));
            }
        }
        sets.push(Self(Set::Plain));
        sets
    }

    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            Set::Plain => "plain",
        }
    }

    pub(super) fn set(self) -> Set {
        self.0
    }
}

/// Compiles one function body for each instruction set and chooses by the first argument, an [`Instructions`].
///
/// The body is ordinary Rust of exact operations (`mul_add`, `+`, `*`, `/`, comparisons). The compiler may vectorise it
/// but never reorders or contracts floating-point operations, so all versions return the same bits.
macro_rules! kernel {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $output:ty)? $body:block) => {
        $(#[$attribute])*
        #[allow(clippy::too_many_arguments)]
        $visibility fn $name(instructions: $crate::model::instructions::Instructions, $($argument: $type),*) $(-> $output)? {
            #[inline(always)]
            fn body($($argument: $type),*) $(-> $output)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
            fn avx512($($argument: $type),*) $(-> $output)? {
                body($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2($($argument: $type),*) $(-> $output)? {
                body($($argument),*)
            }

            match instructions.set() {
                // SAFETY: an `Instructions` exists only for a set that was detected on this machine.
                #[cfg(target_arch = "x86_64")]
                $crate::model::instructions::Set::Avx512 => unsafe { avx512($($argument),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::model::instructions::Set::Avx2 => unsafe { avx2($($argument),*) },
                $crate::model::instructions::Set::Plain => body($($argument),*),
            }
        }
    };
}
pub(super) use kernel;
