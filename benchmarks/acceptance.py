"""Quality on standard data sets, through the HTTP API of a fresh service.

    python -m benchmarks.acceptance --data FOLDER [concrete] [housing] [mnist]

Prints one line per figure. Times depend on the machine and on its other load.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from credence.client import Client
from credence.types import Json
from examples.demo_parts.service import running_service

PREDICT_ROWS = 500
MNIST_SAMPLES = 30


def train(client: Client, path: Path, request: Json) -> Json:
    """Upload and train. Returns the version, with the seconds of the training."""
    dataset = client.upload(path)
    started = time.monotonic()
    job = client.wait(client.submit_train({"dataset": dataset["id"], **request})["id"])
    if job["status"] != "succeeded":
        raise RuntimeError(f"{job['id']} {job['status']}: {job['error']}")
    version = dict(client.version(job["model"], job["version"] or 1))
    return {**version, "seconds": time.monotonic() - started}


def evaluate(client: Client, model: str, path: Path, prune: float = 0.0) -> Json:
    """The test metrics of an evaluation job."""
    request = {"version": 1, "dataset": client.upload(path)["id"], "prune": prune}
    job = client.wait(client.submit_evaluate(model, request)["id"])
    if job["status"] != "succeeded":
        raise RuntimeError(f"{job['id']} {job['status']}: {job['error']}")
    return dict(job["metrics"])


def concrete(client: Client, root: Path, folder: Path) -> None:
    """uci/concrete, split 0, with the usual network of one hidden layer of 50."""
    training, test = data.uci_split(root, "concrete", 0, folder)
    request = {"model": "concrete", "target": "y", "network": {"kind": "mlp", "hidden": [50]}}
    version = train(client, training, request)
    _print_regression("concrete split 0", version, evaluate(client, "concrete", test))


def housing(client: Client, root: Path, folder: Path) -> None:
    """California housing, with its missing values and its categorical column."""
    training, test = data.housing(root, folder)
    version = train(client, training, {"model": "housing", "target": "median_house_value"})
    _print_regression("california housing", version, evaluate(client, "housing", test))


def mnist(client: Client, root: Path, folder: Path) -> None:
    """784-400-400-10, 10 epochs: test accuracy of every variant with 30 samples."""
    request = {
        "model": "mnist",
        "target": "digit",
        "task": "classification",
        "network": {"kind": "mlp", "hidden": [400, 400]},
        "training": {"epochs": 10},
    }
    version = train(client, data.mnist_file(root, "train", folder), request)
    print(f"mnist: trained in {version['seconds']:.0f} s, KL {version['method']['kl']}")
    for variant in version["variants"]:
        _print_mnist(client, root, variant)


def _print_mnist(client: Client, root: Path, variant: Json) -> None:
    images, labels = data.mnist(root, "test")
    probabilities = []
    for start in range(0, len(images), PREDICT_ROWS):
        inputs = {"image": images[start : start + PREDICT_ROWS].tolist()}
        request = {"model": "mnist", "inputs": inputs, "samples": MNIST_SAMPLES}
        prediction = client.submit_predict({**request, "prune": variant["prune"]})
        probabilities.append(np.array(prediction["mean"]))
    p = np.concatenate(probabilities)
    accuracy = (p.argmax(1) == labels).mean()
    log_likelihood = np.log(p[np.arange(len(p)), labels].clip(1e-300)).mean()
    print(
        f"mnist: prune {variant['prune']:4.2f}  weights {variant['num_weights']:7,}  "
        f"bytes {variant['bytes']:9,}  accuracy {100 * accuracy:5.2f} %  "
        f"log likelihood {log_likelihood:.4f}"
    )


def _print_regression(name: str, version: Json, metrics: Json) -> None:
    print(
        f"{name}: trained in {version['seconds']:.0f} s; {metrics['rows']} test rows: "
        f"log likelihood {metrics['log_likelihood']:.3f}, rmse {metrics['rmse']:.4g}, "
        f"crps {metrics['crps']:.4g}, "
        f"90 % intervals cover {100 * metrics['coverage']['0.9']:.1f} %"
    )


RUNS = {"concrete": concrete, "housing": housing, "mnist": mnist}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="see benchmarks/data.py")
    parser.add_argument("runs", nargs="*", choices=[*RUNS, []], help="all by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with running_service(folder / "service.log") as client:
            for name in arguments.runs or RUNS:
                RUNS[name](client, arguments.data, folder)


if __name__ == "__main__":
    main()
