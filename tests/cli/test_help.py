"""Every command tells how it is used."""

import re

import pytest
import typer

pytest.importorskip("typer", reason="the command line needs typer")

from keras_transformer.cli.app import app

GROUP = typer.main.get_command(app)
COMMANDS = [
    *((name,) for name in GROUP.commands if name != "tokenizer"),
    *(("tokenizer", name) for name in GROUP.commands["tokenizer"].commands),
]


def test_commands_are_those_of_the_documentation():
    assert sorted(GROUP.commands) == [
        "benchmark", "demo", "evaluate", "export", "inspect", "recipe", "score", "tokenizer", "train", "translate",
    ]  # fmt: skip


@pytest.mark.parametrize("names", COMMANDS, ids="-".join)
def test_help_has_an_example_of_the_command_with_options_that_exist(run_anything, names):
    status, output, _ = run_anything(*names, "--help")
    text = re.sub(r"-\s*\n\s+(?=[a-z])", "-", output)
    example = re.search(r"Example:.*?keras-\s*transformer (.*?)\n\s*\n", text, re.DOTALL)
    assert status == 0 and example, output
    words = " ".join(example[1].split()).split()
    assert tuple(words[: len(names)]) == names
    for option in (word for word in words if word.startswith("--")):
        assert re.search(rf"{option}\b", output.split("Options:")[1])


@pytest.mark.parametrize("names", COMMANDS, ids="-".join)
def test_every_option_says_what_it_means(names):
    command = GROUP
    for name in names:
        command = command.commands[name]
    assert all(parameter.help for parameter in command.params)


def test_mistyped_options_and_commands_are_errors_of_usage(run_anything):
    for arguments in (["trian"], ["train", "demo", "--too", "x"], ["translate"]):
        status, output, _ = run_anything(*arguments)
        assert (status, output) == (2, "")


def test_shells_can_complete_the_commands(run_anything):
    status, output, _ = run_anything("--show-completion", "bash")
    assert status == 0 and output.strip().endswith("keras-transformer")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "Stopped."),
        (OSError(28, "No space left on device"), 2, "keras-transformer: [Errno 28] No space left on device"),
    ],
)
def test_what_comes_before_a_command_has_begun_is_one_line(run_anything, monkeypatch, error, status, message):
    def fail(**_):
        raise error

    monkeypatch.setattr("keras_transformer.cli.app.app", fail)
    assert run_anything() == (status, "", message)
