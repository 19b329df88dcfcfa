"""The two distributions of this repository: the client, and the service that depends on it."""

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
from tests.credence.running import Service, environment

ROOT = Path(__file__).parents[2]
SOURCES = ("app", "core", "credence", "models", "worker")
HEAVY = (
    "torch",
    "celery",
    "boto3",
    "pandas",
    "polars",
    "pyarrow",
    "numpy",
    "fastapi",
    "sqlalchemy",
)
WITHOUT = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {(*HEAVY, "app", "core", "models", "worker")}:
            raise ModuleNotFoundError("absent: " + name, name=name)

finders = [finder for finder in sys.meta_path if "Editable" not in str(finder)]
sys.meta_path[:] = [Absent(), *finders]
"""
ROWS = "kind,x0,x1\nodd,0.5,1.0\neven,,2.0\n"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both wheels by the name of the distribution, built without network."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheels")
    made = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    for folder in SOURCES:
        shutil.copytree(ROOT / folder, source / folder, ignore=made)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    projects = [str(source / "credence"), str(source)]
    subprocess.run([*pip, "--wheel-dir", str(target), *projects], check=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in target.glob("*.whl")}


@pytest.fixture(scope="module")
def client_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's packages alone, as pip puts them there."""
    folder = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), str(wheels["credence_client"])], check=True)
    return folder


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


def run(code: str, folder: Path, *arguments: str, url: str = "", stdin: str = "") -> str:
    """Run code where the client is installed, and nothing heavy is."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code, *arguments],
        env=environment(PYTHONPATH=str(folder), CREDENCE_URL=url),
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr


def test_the_service_is_more_than_the_client_and_depends_on_it(wheels: dict[str, Path]) -> None:
    client, service = contents(wheels["credence_client"]), contents(wheels["credence_server"])
    assert {name.partition("/")[0] for name in client} == {"credence"}
    assert {name.partition("/")[0] for name in service} == set(SOURCES)
    assert not client & service
    sources = {str(path.relative_to(ROOT)) for f in SOURCES for path in (ROOT / f).rglob("*.py")}
    assert {name for name in client | service if name.endswith(".py")} == sources
    assert "credence/py.typed" in client
    assert "credence-client" in requirements(wheels["credence_server"])


def test_the_client_brings_little(wheels: dict[str, Path]) -> None:
    brought = requirements(wheels["credence_client"])
    assert brought == {"httpx", "nanoarrow", "narwhals", "rich", "typer"}
    for name in HEAVY:
        assert name not in brought


def test_both_have_the_version_of_the_package(wheels: dict[str, Path]) -> None:
    assert {metadata(wheel)["Version"] for wheel in wheels.values()} == {package.__version__}


def test_the_client_is_imported_at_once(client_folder: Path) -> None:
    code = "import time; a = time.process_time(); import credence; print(time.process_time() - a)"
    assert min(float(run(code, client_folder)) for _ in range(3)) < 0.3


def test_frames_are_predicted_with_the_client_alone(
    client_folder: Path, service: Service, version: Version
) -> None:
    code = """
from credence import Client
with Client() as client:
    prediction = client.predict("small", [{"kind": "odd", "x0": 0.5, "x1": 1.0}])
    print(*prediction.to_frame()[0])
    try:
        prediction.mean
    except ModuleNotFoundError as error:
        print(error)
"""
    columns, advice = run(code, client_folder, url=service.url).splitlines()
    numbers = "mean median aleatoric_variance epistemic_variance total_variance mc_error"
    assert columns.startswith(numbers)
    assert "pip install numpy" in advice


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["predict", "small"], "mean,median,aleatoric_variance,"),
        (["predict", "small", "--format", "jsonl"], '{"mean": '),
        (["predict", "small", "--format", "table"], "deviation"),
        (["predict", "small", "--format", "parquet"], "pip install pyarrow"),
        (["models", "list"], "small"),
        (
            ["models", "export", "small", "--format", "onnx"],
            "pip install 'credence-server[export]'",
        ),
        (["serve", "--port", "0"], "pip install credence-server"),
        (["keys", "list"], "pip install credence-server"),
        (["--version"], f"credence {package.__version__}"),
    ],
    ids=" ".join,
)
def test_the_command_line_runs_with_the_client_alone(
    client_folder: Path, service: Service, version: Version, arguments: list[str], shown: str
) -> None:
    code = "from credence.cli import main\nmain()"
    told = run(code, client_folder, *arguments, url=service.url, stdin=ROWS)
    assert shown in " ".join(told.replace("│", " ").split())
