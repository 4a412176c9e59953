//! A BPF linker made of LLVM's own tools: llvm-link, opt, llc.
//!
//! rustc hands its linker bitcode for this target, not machine code, so linking is: merge the modules, drop what no
//! program or map needs, inline the rest (a BPF program may call little), and translate. bpf-linker does the same with
//! its own copy of LLVM, which is twenty times the download and a minute of compiling. What is lost is type information
//! (BTF): debug information is dropped, since its Rust type names are not legal in the kernel.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::llvm::Llvm;
use crate::command::{self, Failure, Result};

/// Set for the process that is to link: the three tools as a path list.
pub(super) const VARIABLE: &str = "LB_XTASK_LINKER";

/// The oldest instruction set that every supported kernel has.
const CPU: &str = "v2";

/// The tools to link with, if rustc started this process as its linker.
pub(crate) fn requested() -> Option<Llvm> {
    Llvm::from_variable(&env::var_os(VARIABLE)?)
}

/// Links as rustc's `args` say.
pub(crate) fn link(tools: &Llvm, args: impl Iterator<Item = OsString>) -> Result {
    let job = Job::parse(args)?;
    let symbols = fs::read_to_string(&job.exported)
        .map_err(|error| Failure::new(format!("cannot read {}: {error}", job.exported.display())))?;
    let merged = job.output.with_extension("merged.bc");
    let optimised = job.output.with_extension("optimised.bc");

    command::run_quietly(
        Command::new(&tools.link)
            .args(&job.modules)
            .arg("-o")
            .arg(&merged),
    )?;
    command::run_quietly(
        Command::new(&tools.opt)
            .arg("-passes=strip,internalize,globaldce,default<O3>,globaldce")
            .arg(format!(
                "-internalize-public-api-list={}",
                symbols.lines().collect::<Vec<_>>().join(",")
            ))
            .arg(&merged)
            .arg("-o")
            .arg(&optimised),
    )?;
    command::run_quietly(
        Command::new(&tools.llc)
            .args(["-march=bpfel", &format!("-mcpu={CPU}"), "-filetype=obj"])
            .arg(&optimised)
            .arg("-o")
            .arg(&job.output),
    )?;
    [merged, optimised].iter().try_for_each(|file| remove(file))
}

/// The part of rustc's command line that matters here.
#[derive(Debug, Default, PartialEq)]
struct Job {
    /// A file with one symbol a line: programs, maps and the licence.
    exported: PathBuf,
    output: PathBuf,
    modules: Vec<PathBuf>,
}

impl Job {
    fn parse(mut args: impl Iterator<Item = OsString>) -> Result<Self> {
        let mut job = Self::default();
        while let Some(arg) = args.next() {
            let mut value = || args.next().map(PathBuf::from).unwrap_or_default();
            match arg.to_string_lossy().as_ref() {
                "--export-symbols" => job.exported = value(),
                "-o" => job.output = value(),
                // The target fixes the processor, and nothing is linked from outside.
                "-L" | "--cpu" | "--cpu-features" | "--target" | "--export" => drop(value()),
                flag if flag.starts_with('-') => {}
                _ => job.modules.push(arg.into()),
            }
        }
        if job.output.as_os_str().is_empty() || job.exported.as_os_str().is_empty() || job.modules.is_empty()
        {
            return Err(Failure::new("not a command line of rustc's for a BPF linker"));
        }
        match job
            .modules
            .iter()
            .find(|module| module.extension().is_some_and(|end| end == "rlib"))
        {
            Some(library) => {
                let library = library.display();
                Err(Failure::new(format!(
                    "{library}: build the kernel programs with `lto = true`"
                )))
            }
            None => Ok(job),
        }
    }
}

fn remove(file: &Path) -> Result {
    fs::remove_file(file).map_err(|error| Failure::new(format!("cannot remove {}: {error}", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Job> {
        Job::parse(line.split(' ').map(OsString::from))
    }

    #[test]
    fn rustcs_command_line_is_understood() {
        let job =
            parse("--export-symbols /t/symbols /t/prog.o -L /t/raw --cpu generic -o /t/prog -O3 --debug")
                .unwrap();
        let wanted = Job {
            exported: "/t/symbols".into(),
            output: "/t/prog".into(),
            modules: vec!["/t/prog.o".into()],
        };
        assert_eq!(job, wanted);
    }

    #[test]
    fn a_build_without_whole_program_optimisation_is_refused_with_its_mend() {
        let failure = parse("--export-symbols /t/s /t/a.o /t/libcore.rlib -o /t/a").unwrap_err();
        assert!(failure.to_string().contains("`lto = true`"), "{failure}");
    }

    #[test]
    fn a_command_line_without_modules_is_refused() {
        assert!(parse("--export-symbols /t/s -o /t/a").is_err());
    }
}
