"""The three distributions of this repository: the client, models, and the service with both."""

import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import credence as package
from credence.types import Version
from tests.credence.invoking import words
from tests.credence.running import Service, environment

ROOT = Path(__file__).parents[2]
SOURCES = ("app", "core", "credence", "models", "worker")
HEAVY = (
    "torch", "celery", "boto3", "pandas", "polars", "pyarrow", "numpy", "fastapi", "sqlalchemy",
)  # fmt: skip
SERVER = (
    "fastapi", "starlette", "uvicorn", "celery", "redis", "sqlalchemy", "boto3", "app", "worker",
)  # fmt: skip
WITHOUT = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in %s:
            raise ModuleNotFoundError("absent: " + name, name=name)

finders = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
sys.meta_path[:] = [Absent(), *finders]
"""
ROWS = "kind,x0,x1\nodd,0.5,1.0\neven,,2.0\n"

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels by the name of the distribution, built without network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    made = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, source / folder, ignore=made)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    projects = [str(source / "credence"), str(source / "credence/scoring"), str(source)]
    subprocess.run([*pip, "--wheel-dir", str(target), *projects], check=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in target.glob("*.whl")}


def installed(folder: Path, *wheels: Path) -> Path:
    """The packages of these wheels alone, as pip puts them there."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), *map(str, wheels)], check=True)
    return folder


@pytest.fixture(scope="module")
def client_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("client"), wheels["credence_client"])


def contents(wheel: Path) -> set[str]:
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def metadata(wheel: Path) -> Message:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(archive.read(name))


def requirements(wheel: Path) -> set[str]:
    lines = metadata(wheel).get_all("Requires-Dist", [])
    return {re.match(r"[\w-]+", line)[0] for line in lines if "extra ==" not in line}  # type: ignore[index]


def run(
    code: str,
    folder: Path,
    *arguments: str,
    url: str = "",
    absent: tuple[str, ...] = (*HEAVY, "app", "core", "models", "worker"),
) -> str:
    """Run code where the packages in `folder` are installed, and those in `absent` are not."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT % (absent,) + code, *arguments],
        env=environment(PYTHONPATH=str(folder), CREDENCE_URL=url, XDG_CACHE_HOME=str(folder)),
        cwd=folder,
        input=ROWS,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr


def test_each_source_is_in_one_distribution(wheels: dict[str, Path]) -> None:
    client, models, service = (
        contents(wheels[f"credence_{name}"]) for name in ("client", "models", "server")
    )
    assert {name.partition("/")[0] for name in client} == {"credence"}
    assert not client & service
    assert not (client | service) & models
    sources = {str(path.relative_to(ROOT)) for f in SOURCES for path in (ROOT / f).rglob("*.py")}
    assert {name for name in client | models | service if name.endswith(".py")} == sources
    assert "credence/py.typed" in client
    assert {metadata(wheel)["Version"] for wheel in wheels.values()} == {package.__version__}


def test_each_distribution_brings_what_it_needs(wheels: dict[str, Path]) -> None:
    client, models, service = (
        requirements(wheels[f"credence_{name}"]) for name in ("client", "models", "server")
    )
    assert client == {"httpx", "nanoarrow", "narwhals", "rich", "typer"}
    assert "credence-client" in models
    assert not models & {*SERVER, "pandas"}
    assert {"credence-models", *models} <= service


def test_models_load_where_no_server_is_installed(
    wheels: dict[str, Path], service: Service, version: Version, tmp_path: Path
) -> None:
    code = """
import credence
model = credence.load("models:/small")
print(model.version, *model.predict([{"kind": "odd", "x0": 0.5, "x1": 1.0}], samples=5).mean)
"""
    folder = installed(tmp_path, wheels["credence_client"], wheels["credence_models"])
    told = run(code, folder, url=service.url, absent=(*SERVER, "pandas", "polars", "scipy"))
    number, mean = told.split()
    assert number == str(version["version"])
    assert float(mean)


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["predict", "small"], "mean,median,aleatoric_variance,"),
        (["predict", "small", "--format", "table"], "deviation"),
        (["predict", "small", "--format", "parquet"], "pip install pyarrow"),
        (["models", "export", "small", "--format", "onnx"], "'.[export]'"),
        (["serve", "--port", "0"], "pip install ./credence ./credence/scoring ."),
        (["--version"], f"credence {package.__version__}"),
    ],
    ids=" ".join,
)
def test_the_command_line_runs_with_the_client_alone(
    client_folder: Path, service: Service, version: Version, arguments: list[str], shown: str
) -> None:
    code = "from credence.cli import main\nmain()"
    assert shown in words(run(code, client_folder, *arguments, url=service.url))
