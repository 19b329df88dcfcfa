"""Commands of `credence` in this process: as quick as the functions behind them."""

import os

from typer.testing import CliRunner, Result

from credence.cli import app

NOBODY = "http://127.0.0.1:1"  # a command that asks it ends with 3


def command(*arguments: str, url: str = "", stdin: str | bytes = "", **settings: str) -> Result:
    """Run a command to its end; `url` is the service it speaks to."""
    env: dict[str, str | None] = {n: None for n in os.environ if n.startswith("CREDENCE_")}
    env |= {"NO_COLOR": "1"} | ({"CREDENCE_URL": url} if url else {}) | settings
    done = CliRunner().invoke(app, arguments, input=stdin, env=env, prog_name="credence")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def printed(*arguments: str, url: str = "", stdin: str | bytes = "", **settings: str) -> str:
    """What a command prints that must succeed."""
    done = command(*arguments, url=url, stdin=stdin, **settings)
    assert done.exit_code == 0, done.stderr
    return done.stdout


def words(text: str) -> str:
    """Without the frame that is drawn around errors, and its line ends."""
    return " ".join(text.replace("│", " ").split())
