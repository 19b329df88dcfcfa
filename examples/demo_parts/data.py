"""Real data from scikit-learn; one fifth of the rows is held out."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_diabetes, load_digits

HELD_OUT_FRACTION = 0.2
SEED = 0


@dataclass(frozen=True)
class Split:
    """Inputs and targets of training rows and held-out rows."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def split(x: np.ndarray, y: np.ndarray) -> Split:
    """Hold out a random fifth."""
    order = np.random.default_rng(SEED).permutation(len(y))
    test, train = np.split(order, [round(HELD_OUT_FRACTION * len(y))])
    return Split(x[train], y[train], x[test], y[test])


def diabetes() -> tuple[list[str], Split]:
    """Disease progression of 442 patients from ten measurements, in their own units."""
    data = load_diabetes(scaled=False)
    return list(data.feature_names), split(data.data, data.target)


def digits() -> Split:
    """1,797 hand-written digits, 8 × 8 pixels of 0 to 16."""
    data = load_digits()
    return split(data.images, data.target)


def write_csv(path: Path, names: list[str], x: np.ndarray, y: np.ndarray) -> None:
    """A table with the target in the last column."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "progression"])
        writer.writerows(np.column_stack([x, y]).tolist())


def write_npz(path: Path, images: np.ndarray, labels: np.ndarray) -> None:
    """One tensor column and one column of numbers."""
    np.savez(path, image=images.astype(np.float32), digit=labels.astype(np.int64))


def rotate(images: np.ndarray, degrees: float) -> np.ndarray:
    """Rotate every image; the corners are filled with zeros."""
    turned: np.ndarray = ndimage.rotate(images, degrees, axes=(1, 2), reshape=False, order=1)
    return turned


def stretch(x: np.ndarray, centre: np.ndarray, factor: float) -> np.ndarray:
    """Move every row to `factor` times its distance from the centre."""
    return centre + factor * (x - centre)
