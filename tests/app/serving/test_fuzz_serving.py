"""Faults of other servers that we must not have, where no other test shows it."""

import ast
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.context import open_context
from core.settings import load_settings
from models.artifact.files import read_model
from models.exceptions import CorruptArtifact

ROOT = Path(__file__).parents[3]
UNPICKLERS = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


@pytest.mark.parametrize("package", ["app", "core", "credence", "models", "worker"])
def test_nothing_here_can_unpickle(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text()
        assert not UNPICKLERS & set(_imported(ast.parse(text))), path
        assert "torch.load" not in text.replace("`torch.load`", ""), path
        assert "allow_pickle=True" not in text, path


class _Pickled:
    """Says so if it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("a pickle was opened",)


def test_a_pickle_in_place_of_weights_is_refused(trained: Path, tmp_path: Path) -> None:
    data_dir = shutil.copytree(trained, tmp_path / "data")
    context = open_context(load_settings(data_dir=data_dir))
    path = context.registry.path(context.registry.get("price", 2))
    context.close()
    next(path.glob("*.safetensors")).write_bytes(pickle.dumps(_Pickled()))
    with pytest.raises(CorruptArtifact):
        read_model(path)
