"""Examine an installation: what is wrong, and what would be right.

Nothing is created or mended on the way, but for probes that are removed again. A check that has no
answer within its time is a finding like any other, and what needs the thing it asked for is left
out: one fault, one line. No finding holds a secret of the settings, whatever a library says.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import unquote, urlsplit

from core.exceptions import CredenceError
from core.maintenance import doctor_database, doctor_machine
from core.maintenance.findings import Finding, State
from core.settings import Settings

__all__ = ["Check", "Diagnosis", "Finding", "State", "examine", "verdict"]

SECONDS = 10.0  # for one check: servers have 3 s to take a connection
LONG_SECONDS = 120.0  # for one that reads a whole database
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Check:
    """A question to the installation; asked only if all that it `needs` was found to be there."""

    name: str
    ask: Callable[[Settings], Finding]
    needs: tuple[str, ...] = ()
    seconds: float = SECONDS


@dataclass(frozen=True)
class Diagnosis:
    """What a check has found."""

    name: str
    finding: Finding


class Verdict(StrEnum):
    """Of all checks together."""

    GOOD = "good"
    BROKEN = "broken"


CHECKS = (
    Check("disk", doctor_machine.disk),
    Check("data directory", doctor_machine.data_directory),
    Check("threads", doctor_machine.threads),
    Check("device", doctor_machine.device),
    Check("broker", doctor_machine.broker, ("data directory",)),
    Check("artifact store", doctor_machine.store, ("data directory",)),
    Check("database", doctor_database.connection, ("data directory",)),
    Check("integrity", doctor_database.integrity, ("database",), LONG_SECONDS),
    Check("schema", doctor_database.schema, ("database",)),
    Check("clock", doctor_database.clock, ("schema",)),
    Check("workers", doctor_database.workers, ("schema",)),
    Check("leases", doctor_database.leases, ("schema",)),
    Check("queue", doctor_database.queue, ("schema",)),
    Check("keys", doctor_database.keys, ("schema",)),
)


def examine(settings: Settings, checks: Sequence[Check] = CHECKS) -> list[Diagnosis]:
    """Ask one after the other."""
    secrets, missing = _secrets(settings), set[str]()
    found = []
    for check in checks:
        if missing.intersection(check.needs):
            missing.add(check.name)
            continue
        finding = _ask(check, settings)
        if finding.state is State.BROKEN or finding.is_missing:
            missing.add(check.name)
        found.append(Diagnosis(check.name, _without(secrets, finding)))
    return found


def verdict(found: Iterable[Diagnosis]) -> Verdict:
    """Warnings are for people; only what is broken fails."""
    broken = any(diagnosis.finding.state is State.BROKEN for diagnosis in found)
    return Verdict.BROKEN if broken else Verdict.GOOD


def _ask(check: Check, settings: Settings) -> Finding:
    """In a thread that is left behind if it hangs: it ends with the process."""
    answers: list[Finding] = []
    thread = threading.Thread(target=lambda: answers.append(_answer(check, settings)), daemon=True)
    thread.start()
    thread.join(check.seconds)
    if answers:
        return answers[0]
    advice = "look at what it asks for: the process or the disk hangs"
    return Finding(State.BROKEN, f"no answer within {check.seconds:g} s", advice)


def _answer(check: Check, settings: Settings) -> Finding:
    try:
        return check.ask(settings)
    except Exception as error:  # whatever it is, it is what was asked for
        return Finding(State.BROKEN, _reason(error), "mend what it names, then ask again")


def _reason(error: BaseException) -> str:
    """What this project says, and what the library below it says, which knows why."""
    told = [str(error) if isinstance(error, CredenceError) else f"{type(error).__name__}: {error}"]
    cause = error.__cause__
    if cause is not None:
        told.append(str(getattr(cause, "orig", None) or cause))
    return " ".join(": ".join(told).split())[:REASON_CHARACTERS]


def _secrets(settings: Settings) -> list[str]:
    """Passwords, as they stand in URLs and as they are."""
    urls = (settings.sqlalchemy_url, settings.resolved_broker_url)
    quoted = [password for url in urls if (password := urlsplit(url).password)]
    return sorted({*quoted, *map(unquote, quoted)}, key=len, reverse=True)


def _without(secrets: Iterable[str], finding: Finding) -> Finding:
    found = finding.found
    for secret in secrets:
        found = found.replace(secret, "***")
    return replace(finding, found=found)
