"""The command line as a whole: how it starts, explains itself, completes and looks."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from core.release import release
from credence.cli import app
from credence.types import Version
from tests.credence.running import CREDENCE, Service, credence, environment

HEAVY = ("torch", "pandas", "polars", "sklearn", "fastapi", "pyarrow", "numpy", "sqlalchemy")
PROBE = f"""
import sys
from credence.cli import main
try:
    main()
finally:
    print(*(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""


def all_commands(group: typer.core.TyperGroup) -> Iterator[typer.core.TyperCommand]:
    for command in group.commands.values():
        if isinstance(command, typer.core.TyperGroup):
            yield from all_commands(command)
        else:
            assert isinstance(command, typer.core.TyperCommand)
            yield command


@pytest.mark.parametrize(
    "command", list(all_commands(typer.main.get_group(app))), ids=lambda c: c.name
)
def test_every_command_has_an_example(command: typer.core.TyperCommand) -> None:
    assert "xample" in (command.help or "")
    assert "credence " in (command.help or "")


def test_it_starts_with_little(service: Service, version: Version) -> None:
    for arguments, stdin in ((["--help"], ""), (["predict", "small"], "kind,x0,x1\nodd,1,2\n")):
        done = subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            env=environment(CREDENCE_URL=service.url),
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout
        assert done.stderr.strip() == ""


def test_it_knows_its_release() -> None:
    assert credence("--version").stdout == f"credence {release()}\n"


def completed(url: str, line: str) -> str:
    """What is offered for the last word."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    env = {"CREDENCE_URL": url, "_CREDENCE_COMPLETE": "complete_bash", **words}
    return CliRunner().invoke(app, env=env, prog_name="credence").output.strip()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("credence predict sm", "small"),
        ("credence datasets show ds_", "ds_"),
        ("credence jobs show job", "job_"),
    ],
)
def test_a_shell_completes_what_the_service_has(
    service: Service, version: Version, line: str, offered: str
) -> None:
    assert offered in completed(service.url, line)


def test_without_a_service_there_is_nothing_to_complete() -> None:
    assert completed("http://127.0.0.1:1", "credence predict sm") == ""


def shown(command: list[str], until: str, **settings: str) -> str:
    """What a command shows on a terminal, up to the line with `until`; then it is stopped."""
    terminal, stdout = pty.openpty()
    env = environment(COLUMNS="120", TERM="xterm-256color", **settings)
    with subprocess.Popen(
        [*CREDENCE, *command],
        env=env,
        stdout=stdout,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        os.close(stdout)
        text = ""
        while until not in text:
            text += os.read(terminal, 10_000).decode()
        process.terminate()
    os.close(terminal)
    return text


def test_rows_unlike_training_stand_out(service: Service, version: Version, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("kind,x0,x1\nodd,0.1,0.2\nodd,900,-900\n")
    told = shown(["predict", "small", str(path)], "unlike training", CREDENCE_URL=service.url)
    lines = told.splitlines()  # the last of them may be the start of what follows the table
    number = next(i for i, line in enumerate(lines) if "unlike training" in line)
    usual, strange = lines[number - 1 : number + 1]
    assert strange.startswith("\x1b[1m")  # bold: the colour is left out, as NO_COLOR asks
    assert "\x1b[1m" not in usual


def test_the_service_says_what_to_do_first(tmp_path: Path) -> None:
    told = shown(["api", "--port", "0", "--data-dir", str(tmp_path)], "Ctrl-C stops")
    first, *rest = told.splitlines()
    address = first.removeprefix("ready on ")
    assert address.startswith("http://127.0.0.1:")
    welcome = "\n".join(rest)
    assert f"dashboard   {address}/" in welcome
    assert f"export CREDENCE_URL={address}" in welcome
    assert "credence train" in welcome
