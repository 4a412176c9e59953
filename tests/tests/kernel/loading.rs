//! The verifier takes the programs, and they stay small.

use aya::Ebpf;
use aya::programs::{Program, ProgramError};

use crate::support;

/// The verifier gives up at a million; a program that comes near this has lost a bound somewhere.
const LIMIT: u32 = 20_000;

fn load(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::SchedClassifier(program) => program.load(),
        Program::CgroupSkb(program) => program.load(),
        other => panic!("a program of a kind that lb does not use: {other:?}"),
    }
}

// [KERNEL-20]
#[test]
fn every_program_passes_the_verifier_below_the_limit() {
    let Some(granted) = support::object() else { return };
    let mut loaded = Ebpf::load(granted.thing).expect("loaded a moment ago");
    let mut names = Vec::new();
    for (name, program) in loaded.programs_mut() {
        load(program).unwrap_or_else(|error| panic!("{name}: {error}"));
        let info = program.info().expect("a loaded program has information");
        // Kernels before 5.16 do not tell.
        let verified = info.verified_instruction_count().unwrap_or(0);
        support::measured(&format!(
            "{name}: {verified} instructions verified, {} bytes of code",
            info.size_jitted()
        ));
        assert!(verified < LIMIT, "{name} took {verified} instructions to verify");
        names.push(name.to_owned());
    }
    names.sort();
    assert_eq!(names, ["lb_cg_in", "lb_cg_out", "lb_tc_in", "lb_tc_out"]);
}
