"""Which rows should be labelled next: those that the model knows least about, or random ones?

    python -m examples.wine_active

178 wines of three growers. Twelve are labelled at first, then four more in every round: those with
the largest epistemic entropy, or four at random. The scores are means over a few starts, on 60
wines that are never used for training.
"""

import argparse

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from credence.estimators import BayesianClassifier
from credence.rendering import print_table

FIRST, MORE = 12, 4


def run(seed: int, rounds: int, epochs: int, *, by_epistemic: bool) -> list[float]:
    """Log likelihood on the held-out wines after each round."""
    x, y = load_wine(return_X_y=True)
    x, test_x, y, test_y = train_test_split(x, y, test_size=60, stratify=y, random_state=seed)
    labelled, _ = train_test_split(
        np.arange(len(y)), train_size=FIRST, stratify=y, random_state=seed
    )
    random = np.random.default_rng(seed)
    scores = []
    for _ in range(rounds):
        model = BayesianClassifier(hidden=(20,), epochs=epochs, pruning=(), random_state=seed)
        model.fit(x[labelled], y[labelled])
        probabilities = model.predict_proba(test_x)[np.arange(len(test_y)), test_y]
        scores.append(float(np.log(probabilities).mean()))
        rest = np.setdiff1d(np.arange(len(y)), labelled)
        if by_epistemic:
            wanted = rest[np.argsort(model.predict_uncertainty(x[rest]).epistemic)[-MORE:]]
        else:
            wanted = random.choice(rest, MORE, replace=False)
        labelled = np.concatenate([labelled, wanted])
    return scores


def main() -> None:
    """Compare both ways from the same starts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=3)
    given = parser.parse_args()
    means = [
        np.mean(
            [run(s, given.rounds, given.epochs, by_epistemic=b) for s in range(given.starts)], 0
        )
        for b in (True, False)
    ]
    lines = [
        [FIRST + MORE * number, f"{epistemic:.3f}", f"{chance:.3f}"]
        for number, (epistemic, chance) in enumerate(zip(*means, strict=True))
    ]
    print_table(["labelled", "log likelihood, epistemic", "log likelihood, random"], lines)


if __name__ == "__main__":
    main()
