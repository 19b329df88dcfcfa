"""Ratios on a GPU, in interleaved runs, by one command on a machine that has one.

    python -m benchmarks.gpu            # writes results/gpu.json
    python -m benchmarks.gpu --quick    # a few rounds, small networks, no service

* seconds of batches of 1, 8, 64, … rows, and the size that the service joins requests to;
* training steps with products of bfloat16 numbers beside float32;
* answers of a service on this device: its seconds per row beside the predictor's own.

Without a GPU it says so and runs `--quick` on the processor. That shows that the command works, and
nothing about a GPU: there bfloat16 may have no units.
"""

import argparse
from collections.abc import Mapping
from typing import Any

import torch

from benchmarks import results
from benchmarks.gpu.passes import growth
from benchmarks.gpu.service import service
from benchmarks.gpu.steps import steps
from benchmarks.ratios.measurement import Pair

QUICK_NETWORKS = ("13-50-50-2", "784-400-400-10")
NETWORKS = (*QUICK_NETWORKS, "784-1200-1200-10", "784-4096-4096-10")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    content = measure(device, quick=arguments.quick or device.type == "cpu")
    print(report(content), results.save("gpu", content), sep="\n\n")


def measure(device: torch.device, *, quick: bool) -> dict[str, Any]:
    """All ratios, by name, and the growth of batches by network."""
    networks = QUICK_NETWORKS if quick else NETWORKS
    pairs: dict[str, Pair] = {}
    for network in networks:
        pairs |= steps(network, device, quick=quick)
    ratios = {name: pair.ratio() for name, pair in pairs.items()}
    if not quick:
        with service(device) as served:
            ratios |= {name: pair.ratio() for name, pair in served.items()}
    return {
        "machine": results.machine(),
        "device": name_of(device),
        "is_gpu": device.type == "cuda",
        "ratios": {name: round(ratio, 4) for name, ratio in ratios.items()},
        "growth": {network: growth(network, device) for network in networks},
    }


def name_of(device: torch.device) -> str:
    """The card's name, or the processor's."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return str(results.machine()["processor"])


def report(content: Mapping[str, Any]) -> str:
    """The ratios and the growth as tables, after a line that says what they are of."""
    where = f"On {content['device']}."
    if not content["is_gpu"]:
        where = f"No GPU is here. {where} These figures say nothing about a GPU."
    ratios = results.markdown(
        ["our time ÷ the reference's", "ratio"],
        [[name, results.figure(ratio)] for name, ratio in content["ratios"].items()],
    )
    lines = [
        [network, rows, results.figure(1000 * seconds), curve["worth_joining"]]
        for network, curve in content["growth"].items()
        for rows, seconds in curve["seconds"].items()
    ]
    headers = ["batch", "rows", "ms", "requests are joined up to (rows)"]
    return f"{where}\n\n{ratios}\n\n{results.markdown(headers, lines)}"


if __name__ == "__main__":
    main()
