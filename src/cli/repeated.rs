//! Options of every command that may repeat: those before a subcommand and those after it.
//!
//! In: a command line. Out: all values, in the order given. May not: know what they mean.
//!
//! Of a global option that is given on both sides clap keeps the last side's values, and says
//! nothing: `nstance -c a plan -c b` would leave `a` out. So each command has its own.

use clap::{ArgMatches, Command};

/// Gives every subcommand the root's options of these names.
pub fn everywhere(command: Command, names: &[&str]) -> Command {
    let options = command.get_arguments();
    let options: Vec<_> = options
        .filter(|option| names.contains(&option.get_id().as_str()))
        .cloned()
        .collect();
    add(command, &options)
}

fn add(command: Command, options: &[clap::Arg]) -> Command {
    command.mut_subcommands(|subcommand| add(subcommand.args(options), options))
}

/// The values of one of them, from all levels of a command line.
pub fn values<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, name: &str) -> Vec<T> {
    let mut values = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        values.extend(matches.get_many::<T>(name).into_iter().flatten().cloned());
        level = matches.subcommand().map(|(_, matches)| matches);
    }
    values
}
