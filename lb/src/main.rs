//! The `lb` command.

fn main() -> std::process::ExitCode {
    lb::cli::main()
}
