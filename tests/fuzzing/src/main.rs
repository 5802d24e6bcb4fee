//! libFuzzer over one target of the test kit, which the variable `FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use unprovision_testkit::fuzz::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("FUZZ_TARGET names none of {:?}", TARGETS.map(|target| target.name)))
});

fuzz_target!(|input: &[u8]| (TARGET.read)(input));
