//! `completions`.

use crate::harness::Harness;

#[test]
fn each_shell_gets_its_own() {
    let harness = Harness::empty();
    for (shell, word) in [
        ("bash", "complete "),
        ("zsh", "#compdef nstance"),
        ("fish", "complete -c nstance"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ended = harness.ok(&format!("completions {shell}"));
        assert!(ended.stdout.contains(word), "{shell}: {ended}");
        assert!(ended.stdout.contains("detailed-exitcode"), "{shell}");
        assert_eq!(ended.stderr, "");
    }
    assert_eq!(harness.run("completions cobol").code, Some(1));
}
