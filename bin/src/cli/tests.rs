use clap::{Command, CommandFactory as _, Parser as _};

use super::Cli;

/// All commands, those below others too, each with the words that lead to it.
fn all() -> Vec<(String, Command)> {
    fn below(words: &str, command: Command, all: &mut Vec<(String, Command)>) {
        for one in command.get_subcommands().filter(|one| one.get_name() != "help") {
            below(&format!("{words} {}", one.get_name()), one.clone(), all);
        }
        all.push((words.to_owned(), command));
    }
    let mut commands = Vec::new();
    below("unprovision", Cli::command(), &mut commands);
    commands
}

/// The words of a line, as a shell would take them; what follows `>`, and `&`, is none of ours.
fn words(line: &str) -> Vec<String> {
    let line = line
        .split(" > ")
        .next()
        .unwrap_or_default()
        .trim_end_matches(" &");
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_help_has_an_example_and_each_can_be_parsed() {
    let commands = all();
    assert!(commands.len() > 15, "{}", commands.len());
    for (name, command) in commands {
        let help = command
            .get_after_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let (_, examples) = help
            .split_once("Example")
            .unwrap_or_else(|| panic!("{name} has no example"));
        // A variable may stand before it.
        let example = |line: &'_ str| {
            let (before, command) = line.strip_prefix("  ")?.split_once("unprovision ")?;
            let is_one = before.is_empty() || (before.contains('=') && before.ends_with(' '));
            is_one.then(|| format!("unprovision {command}"))
        };
        let examples = examples.lines().filter_map(example).collect::<Vec<_>>();
        assert!(
            examples.iter().any(|line| words(line)
                .join(" ")
                .contains(name.trim_start_matches("unprovision "))),
            "{name} has no example of its own: {help}"
        );
        for example in examples {
            if let Err(error) = Cli::try_parse_from(words(&example)) {
                panic!("{name}: `{example}`: {error}");
            }
        }
    }
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}
