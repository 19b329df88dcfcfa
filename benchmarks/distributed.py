"""Seconds per epoch of one model (784-400-400-10) with one process and with several.

    python -m benchmarks.distributed [--processes 2] [--rounds 7] [--batches 128 1024]

Both run in turns. Each process computes with one thread. While one works alone, the others wait.
Rows are random, because the time of an epoch does not depend on their values.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import torch
from torch import distributed

from benchmarks import results
from benchmarks.interleaving import interleave, ratio
from models.config import BBBConfig, KLConfig, MLPConfig, TrainingConfig
from models.features.rows import Rows
from models.fitting.distributed import ALONE, Ranks, process_group
from models.fitting.row_task import RowTask
from models.inference.bbb import BayesByBackprop
from models.likelihoods import Categorical
from models.networks import MLP
from models.randomness import generator
from models.training.trainer import Trainer

WIDTHS = (784, 400, 400, 10)
TIMEOUT = timedelta(minutes=5)
STEPS = 16  # of an epoch, for every batch size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank:
        run_rank(arguments.batches, arguments.rounds)
    else:
        launch(arguments.processes, sys.argv[1:])


def launch(processes: int, options: list[str]) -> None:
    """Start this module in several processes, one per rank."""
    torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    rank = ["-m", "benchmarks.distributed", "--rank", *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    subprocess.run([sys.executable, "-m", *torchrun, *rank], env=environment, check=True)


def run_rank(batches: list[int], rounds: int) -> None:
    torch.set_num_threads(1)
    with process_group("gloo", TIMEOUT):
        report(Ranks.current(), batches, rounds)


def report(ranks: Ranks, batches: list[int], rounds: int) -> None:
    cells = [measure(ranks, batch, rounds) for batch in batches]
    if ranks.leads:
        settings = {"widths": WIDTHS, "steps": STEPS, "processes": ranks.size, "rounds": rounds}
        data = {"machine": results.machine(), "settings": settings, "cells": cells}
        print(table(cells, ranks.size), results.save("distributed", data), sep="\n\n")


def measure(ranks: Ranks, batch: int, rounds: int) -> dict[str, Any]:
    """Seconds per epoch by round, with one process and with all, and the median speedup."""
    rows = generated(STEPS * batch)

    def alone() -> float:
        seconds = epoch(rows, batch, ALONE) if ranks.leads else 0.0
        distributed.barrier()
        return seconds

    def together() -> float:
        distributed.barrier()
        return epoch(rows, batch, ranks)

    runs = {"alone": alone, "together": together}
    interleave(runs, dict.fromkeys(runs, 1))  # untimed: the first run takes longer
    times = interleave(runs, dict.fromkeys(runs, rounds))
    speedup = ratio(times["alone"], times["together"])
    return {"batch": batch, "seconds": times, "speedup": speedup}


def epoch(rows: Rows, batch: int, ranks: Ranks) -> float:
    """Seconds of one epoch from a fresh state."""
    method = BayesByBackprop(
        MLP.build(MLPConfig(hidden=WIDTHS[1:-1]), WIDTHS[0], WIDTHS[-1]),
        Categorical(WIDTHS[-1]),
        BBBConfig(kl=KLConfig(weight="uniform")),
        len(rows),
    )
    state = method.init(generator(0, "init"))
    config = TrainingConfig(epochs=1, batch_size=batch, learning_rate=1e-3, gradient_clip=10.0)
    trainer = Trainer(RowTask(rows, ranks), config, method, state)
    started = time.perf_counter()
    trainer.run()
    return time.perf_counter() - started


def generated(num_rows: int) -> Rows:
    """Images of noise, with labels computed from the pixels."""
    inputs = torch.rand(num_rows, WIDTHS[0], generator=generator(0, "rows"))
    return Rows(inputs, inputs[:, : WIDTHS[-1]].argmax(1))


def table(cells: list[dict[str, Any]], processes: int) -> str:
    lines = [
        [
            cell["batch"],
            *(results.figure(statistics.median(times)) for times in cell["seconds"].values()),
            results.figure(cell["speedup"]),
        ]
        for cell in cells
    ]
    headers = ["batch", "1 process, s per epoch", f"{processes} processes", "times as fast"]
    return results.markdown(headers, lines)


if __name__ == "__main__":
    main()
