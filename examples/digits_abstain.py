"""A classifier that abstains from uncertain rows: its other answers are right more often.

    python -m examples.digits_abstain

Starts a service, trains on hand-written digits, and predicts those held out. It abstains from the
rows with the largest entropy: among them are most errors, and most digits rotated by 90°.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from credence import Client
from credence.rendering import print_table
from examples.demo_parts.data import digits, rotate
from examples.demo_parts.service import running_service

ANSWERED = (1.0, 0.95, 0.9, 0.8)  # fractions of the upright digits


def run(client: Client, epochs: int | None) -> None:
    """Train, then abstain from more and more rows."""
    data = digits()
    model = client.train(
        {"image": data.train_x.astype(np.float32), "digit": data.train_y},
        target="digit",
        model="digits",
        task="classification",
        training={"epochs": epochs},
        pruning=[],
    )
    upright = {"image": data.test_x.astype(np.float32)}
    turned = {"image": rotate(data.test_x, 90).astype(np.float32)}
    entropy = model.predict(upright)["predictive_entropy"]
    lines = []
    for share in ANSWERED:
        limit = float(np.quantile(entropy, share))
        predicted = model.predict(upright, abstain_above=limit)
        kept = ~predicted.abstained
        right = predicted.labels[kept] == data.test_y[kept]
        left_out = model.predict(turned, abstain_above=limit).abstained.mean()
        lines.append(
            [f"{limit:.3f}", f"{kept.mean():.0%}", f"{right.mean():.1%}", f"{left_out:.0%}"]
        )
    print_table(["abstain above", "answered", "of these right", "abstained on their side"], lines)


def main() -> None:
    """Run with its own service."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, help="by default the recipe's")
    epochs = parser.parse_args().epochs
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder) / "service.log") as client,
    ):
        run(client, epochs)


if __name__ == "__main__":
    main()
