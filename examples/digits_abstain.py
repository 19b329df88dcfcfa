"""A classifier that may say "I do not know": what is left is right more often.

    python -m examples.digits_abstain

Starts a service, trains on hand-written digits, and asks for those held out. The rows with the
largest entropy are left to a human: most of the wrong ones, and most digits laid on their side.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np

from credence import Client
from credence.rendering import print_table
from examples.demo_parts.data import digits, rotate
from examples.demo_parts.service import running_service

ANSWERED = (1.0, 0.95, 0.9, 0.8)  # shares of the upright digits


def tell(client: Client, epochs: int | None) -> None:
    """Train, then abstain more and more."""
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
        asked = model.predict(upright, abstain_above=limit)
        kept = ~asked.abstained
        right = asked.labels[kept] == data.test_y[kept]
        left_out = model.predict(turned, abstain_above=limit).abstained.mean()
        lines.append(
            [f"{limit:.3f}", f"{kept.mean():.0%}", f"{right.mean():.1%}", f"{left_out:.0%}"]
        )
    print_table(["abstain above", "answered", "of these right", "abstained on their side"], lines)


def main() -> None:
    """With a service of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, help="by default the recipe's")
    epochs = parser.parse_args().epochs
    with (
        tempfile.TemporaryDirectory() as folder,
        running_service(Path(folder) / "service.log") as client,
    ):
        tell(client, epochs)


if __name__ == "__main__":
    main()
