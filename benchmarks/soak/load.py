"""Clients that do random things at a bounded rate, and what the service answered."""

import threading
from collections import Counter
from dataclasses import dataclass, field

import httpx

from benchmarks.soak.actions import ACTIONS, Caller, Refused, Unexpected

CLIENTS = 4


@dataclass
class Tally:
    """What was done, refused and wrong."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Load:
    """Clients in threads, until the block ends.

    Args:
        rate: actions per second of all clients together, at most.
    """

    def __init__(self, url: str, rate: float, seed: int = 0) -> None:
        self.tally = Tally()
        self._pause = CLIENTS / rate
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(Caller(url, seed + number),), name="client")
            for number in range(CLIENTS)
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, caller: Caller) -> None:
        with caller.http:
            self._work(caller)

    def _work(self, caller: Caller) -> None:
        actions, weights = list(ACTIONS), list(ACTIONS.values())
        while not self._stop.wait(caller.random.expovariate(1 / self._pause)):
            (action,) = caller.random.choices(actions, weights)
            name = action.__name__
            try:
                action(caller)
            except Refused:
                self.tally.refused[name] += 1
            except (Unexpected, httpx.HTTPError) as error:
                self.tally.wrong.append(f"{name}: {error!r}")
            else:
                self.tally.done[name] += 1
