//! Refuses options that have no effect: each option on the command line must be one that its command uses.
//!
//! A command's options depend on each other: `bench sum` has other options with `--input` than without. A [`Mode`] says
//! which options have an effect after one such choice. An option must have an effect in all modes that apply. clap's
//! `requires` is not enough, because clap drops it if a conflicting option is present.

use anyhow::bail;
use clap::{ArgMatches, Command, parser::ValueSource};

/// The options on a command line, by their names without the hyphens.
#[derive(Debug, Default)]
pub struct Given {
    /// Options before a command that only other commands have.
    pub before_command: Vec<String>,
    /// The options of the command, and those that all commands have.
    pub of_command: Vec<String>,
}

impl Given {
    /// The options that the user has written, by the matches of a command line of `command`.
    pub fn of(command: &Command, matches: &ArgMatches) -> Self {
        match matches.subcommand() {
            None => Self { before_command: Vec::new(), of_command: written(command, matches, |_| true) },
            Some((name, own)) => {
                let of = command.find_subcommand(name).expect("clap has found it");
                let globals = written(command, matches, |arg| arg.is_global_set());
                let mut of_command = written(of, own, |_| true);
                of_command
                    .extend(globals.into_iter().filter(|global| !of_command.contains(global)).collect::<Vec<_>>());
                Self { before_command: written(command, matches, |arg| !arg.is_global_set()), of_command }
            }
        }
    }

    /// Refuses options before a command, and options that have no effect in one of the modes.
    pub fn check(&self, modes: &[Mode]) -> anyhow::Result<()> {
        if let Some(option) = self.before_command.first() {
            bail!("--{option} has no effect before the command: give it after the command, if that takes it");
        }
        let useless =
            |mode| self.of_command.iter().find(|option| !Mode::takes(mode, option)).map(|option| (mode, option));
        let Some((mode, option)) = modes.iter().find_map(useless) else { return Ok(()) };
        match &mode.when {
            When::With(other) => bail!("--{option} has no effect with --{other}: leave it out, or leave out --{other}"),
            When::Without(other) => {
                bail!("--{option} has no effect without --{other}: leave it out, or give --{other}")
            }
            When::Always(why) => bail!("--{option} has no effect here: {why}; leave it out"),
        }
    }
}

/// The options of a command that were written, with their long names. Arguments without one always have an effect.
fn written(command: &Command, matches: &ArgMatches, is_wanted: impl Fn(&clap::Arg) -> bool) -> Vec<String> {
    let is_written = |arg: &&clap::Arg| {
        // The matches of a command do not know `--help`, which ends the program.
        let source = matches
            .try_contains_id(arg.get_id().as_str())
            .ok()
            .and_then(|_| matches.value_source(arg.get_id().as_str()));
        source == Some(ValueSource::CommandLine) && is_wanted(arg)
    };
    command.get_arguments().filter(is_written).filter_map(|arg| arg.get_long().map(str::to_owned)).collect()
}

/// A choice on the command line, and the options that have an effect after it.
#[derive(Debug)]
pub struct Mode {
    when: When,
    options: Options,
}

/// The choice.
#[derive(Debug)]
enum When {
    /// This option was given.
    With(&'static str),
    /// This option was not given.
    Without(&'static str),
    /// The command itself: the reason why it takes no other options.
    Always(&'static str),
}

#[derive(Debug)]
enum Options {
    Only(Vec<&'static [&'static str]>),
    AllBut(&'static [&'static str]),
}

/// The options that choose and watch the device.
pub const DEVICE: &[&str] = &["device", "check", "schedule"];
/// The options of how results are shown.
pub const SHOWN: &[&str] = &["format", "wide"];
/// The options of commands that time kernels.
pub const TIMED: &[&str] = &["samples", "plot", "nvtx"];

impl Mode {
    /// The mode of a command that takes `options`, and the reason why it takes no others.
    pub fn of_command(why: &'static str, options: Vec<&'static [&'static str]>) -> Self {
        Self { when: When::Always(why), options: Options::Only(options) }
    }

    /// The mode that depends on whether `option` is given: then it takes the options `with`, else `without`. In either
    /// mode it takes the options of all commands that time kernels, too.
    pub fn by(
        option: &'static str,
        is_given: bool,
        with: &'static [&'static str],
        without: &'static [&'static str],
    ) -> Self {
        let (when, own) = if is_given { (When::With(option), with) } else { (When::Without(option), without) };
        Self { when, options: Options::Only(vec![own, DEVICE, SHOWN, TIMED]) }
    }

    /// The mode in which `option` is given, and `useless` have no effect.
    pub fn with(option: &'static str, useless: &'static [&'static str]) -> Self {
        Self { when: When::With(option), options: Options::AllBut(useless) }
    }

    /// The mode in which `option` is not given, without which `useless` have no effect.
    pub fn without(option: &'static str, useless: &'static [&'static str]) -> Self {
        Self { when: When::Without(option), options: Options::AllBut(useless) }
    }

    /// [`Mode::with`], with a reason in place of the option.
    pub fn because(why: &'static str, useless: &'static [&'static str]) -> Self {
        Self { when: When::Always(why), options: Options::AllBut(useless) }
    }

    fn takes(&self, option: &str) -> bool {
        match &self.options {
            Options::Only(taken) => taken.iter().any(|taken| taken.contains(&option)),
            Options::AllBut(useless) => !useless.contains(&option),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    /// A program with the options `--n`, `--format` (of all commands), and a command with `--n`, `--axis`, `--input`.
    fn given(line: &str) -> Given {
        let option = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
        let sum = Command::new("sum").args(["n", "axis", "input"].map(option)).arg(Arg::new("kernel"));
        let command = Command::new("bench").arg(option("n")).arg(option("format").global(true)).subcommand(sum);
        let matches = command.clone().try_get_matches_from(line.split(' ')).unwrap();
        Given::of(&command, &matches)
    }

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn options_count_where_they_are_written() {
        for (line, before, own) in [
            ("bench", &[][..], &[][..]),
            ("bench --n --format", &[], &["n", "format"]),
            ("bench sum --n --format", &[], &["n", "format"]),
            ("bench --format sum --n kernel", &[], &["n", "format"]),
            ("bench --n sum --axis", &["n"], &["axis"]),
        ] {
            let given = given(line);
            assert_eq!((given.before_command, given.of_command), (strings(before), strings(own)), "{line}");
        }
    }

    #[test]
    fn an_option_must_have_an_effect_in_all_modes() {
        let message = |line: &str, modes: &[Mode]| given(line).check(modes).unwrap_err().to_string();
        let by_input = |is_given| Mode::by("input", is_given, &["input", "axis"], &["n"]);
        let one_of = |is_given| [by_input(is_given), Mode::without("rung", &["block"])];
        assert!(given("bench sum --input --axis --format").check(&one_of(true)).is_ok());
        assert!(given("bench sum --n").check(&one_of(false)).is_ok());
        assert_eq!(message("bench --n sum", &[])[..34], *"--n has no effect before the comma");
        assert!(message("bench sum --n --input", &one_of(true)).starts_with("--n has no effect with --input"));
        assert!(message("bench sum --n --axis", &one_of(false)).starts_with("--axis has no effect without --input"));
        let none = Mode::of_command("it is a list", vec![DEVICE]);
        assert_eq!(message("bench sum --format", &[none]), "--format has no effect here: it is a list; leave it out");
        let because = Mode::because("it is a list", &["format"]);
        assert!(message("bench sum --axis --format", &[because]).starts_with("--format"));
        assert!(message("bench sum --axis", &[Mode::with("input", &["axis"])]).contains("with --input: leave it out"));
    }
}
