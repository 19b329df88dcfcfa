"""Examines an installation: finds faults and gives advice.

It changes nothing except for probe files, which it removes. A check that does not return in time is
a finding. A check is skipped if a check that it needs has failed, so that one fault gives one line.
Passwords of the settings are removed from every finding.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from core.exceptions import CredenceError
from core.maintenance import checks
from core.maintenance.checks import Finding, State
from core.settings import Settings

__all__ = ["Check", "Diagnosis", "Finding", "State", "examine", "verdict"]

SECONDS = 10.0  # for one check; a connection to a server has 3 s
LONG_SECONDS = 120.0  # for a check that reads a whole database
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Check:
    """A check of the installation. It runs only if all checks that it `needs` succeeded."""

    name: str
    run: Callable[[Settings], Finding]
    needs: tuple[str, ...] = ()
    seconds: float = SECONDS
    is_elsewhere: Callable[[Settings], bool] = lambda settings: False  # it needs nothing here


@dataclass(frozen=True)
class Diagnosis:
    """A check's name and finding."""

    name: str
    finding: Finding


class Verdict(StrEnum):
    """The result of all checks together."""

    GOOD = "good"
    BROKEN = "broken"


HERE = ("data directory",)
CHECKS = (
    Check("disk", checks.disk),
    Check("data directory", checks.data_directory),
    Check("threads", checks.threads),
    Check("device", checks.device),
    Check("broker", checks.broker, HERE, is_elsewhere=checks.has_broker),
    Check("artifact store", checks.store, HERE, is_elsewhere=checks.has_bucket),
    Check("database", checks.connection, HERE, is_elsewhere=checks.has_database_server),
    Check("integrity", checks.integrity, ("database",), LONG_SECONDS),
    Check("schema", checks.schema, ("database",)),
    Check("clock", checks.clock, ("schema",)),
    Check("workers", checks.workers, ("schema",)),
    Check("leases", checks.leases, ("schema",)),
    Check("queue", checks.queue, ("schema",)),
    Check("keys", checks.keys, ("schema",)),
)


def examine(settings: Settings, wanted: Sequence[Check] = CHECKS) -> list[Diagnosis]:
    """Run the checks, one after the other."""
    secrets, missing = _secrets(settings), set[str]()
    found = []
    for check in wanted:
        if missing.intersection(check.needs) and not check.is_elsewhere(settings):
            missing.add(check.name)
            continue
        finding = _run(check, settings)
        if finding.state is State.BROKEN or finding.is_missing:
            missing.add(check.name)
        found.append(Diagnosis(check.name, _without(secrets, finding)))
    return found


def verdict(found: Iterable[Diagnosis]) -> Verdict:
    """`BROKEN` if a finding is. Warnings do not count."""
    broken = any(diagnosis.finding.state is State.BROKEN for diagnosis in found)
    return Verdict.BROKEN if broken else Verdict.GOOD


def _run(check: Check, settings: Settings) -> Finding:
    """Run a check in a thread. If it hangs, the thread stays until the process ends."""
    results: list[Finding] = []
    thread = threading.Thread(target=lambda: results.append(_finding(check, settings)), daemon=True)
    thread.start()
    thread.join(check.seconds)
    if results:
        return results[0]
    advice = "look at what it checks: the process or the disk hangs"
    return Finding(State.BROKEN, f"no answer within {check.seconds:g} s", advice)


def _finding(check: Check, settings: Settings) -> Finding:
    try:
        return check.run(settings)
    except Exception as error:  # every error is a finding
        return Finding(State.BROKEN, _reason(error), "fix what it names, then check again")


def _reason(error: BaseException) -> str:
    """The message of this project's error, and of the library's error that caused it."""
    messages = [
        str(error) if isinstance(error, CredenceError) else f"{type(error).__name__}: {error}"
    ]
    cause = error.__cause__
    if cause is not None:
        messages.append(str(getattr(cause, "orig", None) or cause))
    return " ".join(": ".join(messages).split())[:REASON_CHARACTERS]


def _secrets(settings: Settings) -> list[str]:
    """Passwords of the settings, quoted as in URLs and plain; the longest first."""
    urls = (settings.sqlalchemy_url, settings.resolved_broker_url)
    quoted = [password for url in urls if (password := urlsplit(url).password)]
    return sorted({*quoted, *map(unquote, quoted)}, key=len, reverse=True)


def _without(secrets: Iterable[str], finding: Finding) -> Finding:
    found = finding.found
    for secret in secrets:
        found = found.replace(secret, "***")
    return replace(finding, found=found)
