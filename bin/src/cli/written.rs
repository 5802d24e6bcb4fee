//! `unprovision completions` and `unprovision man`: what a shell and `man` want to know of the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Cli;
use crate::output;

/// Options of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

const COMPLETIONS: &str = "\
Examples:
  unprovision completions bash > ~/.local/share/bash-completion/completions/unprovision
  unprovision completions zsh > ~/.zfunc/_unprovision
  unprovision completions fish > ~/.config/fish/completions/unprovision.fish";

/// Options of `man`.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN)]
pub(crate) struct Man {
    /// The folder; it is made where there is none
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

const MAN: &str = "\
Example:
  unprovision man ~/.local/share/man/man1

A page for each command, unprovision-delete.1 and so on.";

pub(super) fn completions(args: &Completions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "unprovision", &mut script);
    output::print(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(args: &Man) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    let write = || {
        std::fs::create_dir_all(folder)?;
        clap_mangen::generate_to(Cli::command(), folder)
    };
    write().with_context(|| format!("the pages cannot be written to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
