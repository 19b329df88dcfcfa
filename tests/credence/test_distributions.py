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
SERVER = (
    "fastapi",
    "starlette",
    "uvicorn",
    "celery",
    "redis",
    "sqlalchemy",
    "boto3",
    "app",
    "worker",
)
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


@pytest.fixture(scope="module")
def client_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's packages alone, as pip puts them there."""
    return installed(tmp_path_factory.mktemp("client"), wheels["credence_client"])


@pytest.fixture(scope="module")
def models_folder(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the client and of the models."""
    both = wheels["credence_client"], wheels["credence_models"]
    return installed(tmp_path_factory.mktemp("models"), *both)


def installed(folder: Path, *wheels: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(folder), *map(str, wheels)], check=True)
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


def run(
    code: str,
    folder: Path,
    *arguments: str,
    url: str = "",
    stdin: str = "",
    absent: tuple[str, ...] = (*HEAVY, "app", "core", "models", "worker"),
) -> str:
    """Run code where the packages in `folder` are installed, and those in `absent` are not."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT % (absent,) + code, *arguments],
        env=environment(PYTHONPATH=str(folder), CREDENCE_URL=url, XDG_CACHE_HOME=str(folder)),
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else done.stderr


def test_the_service_is_more_than_the_others_and_depends_on_them(wheels: dict[str, Path]) -> None:
    client, service = contents(wheels["credence_client"]), contents(wheels["credence_server"])
    models = contents(wheels["credence_models"])
    assert {name.partition("/")[0] for name in client} == {"credence"}
    assert {name.partition("/")[0] for name in models} == {"core", "credence", "models"}
    assert {name.partition("/")[0] for name in service} == {"app", "core", "credence", "worker"}
    assert not client & service
    assert not (client | service) & models
    sources = {str(path.relative_to(ROOT)) for f in SOURCES for path in (ROOT / f).rglob("*.py")}
    assert {name for name in client | models | service if name.endswith(".py")} == sources
    assert "credence/py.typed" in client
    assert {"credence-client", "credence-models"} < requirements(wheels["credence_server"])
    assert "credence-client" in requirements(wheels["credence_models"])


def test_models_bring_nothing_of_the_server(wheels: dict[str, Path]) -> None:
    assert not requirements(wheels["credence_models"]) & {*SERVER, "pandas"}
    assert requirements(wheels["credence_models"]) <= requirements(wheels["credence_server"])


def test_models_load_where_no_server_is_installed(
    models_folder: Path, service: Service, version: Version
) -> None:
    code = """
import credence
model = credence.load("models:/small")
print(model.version, *model.predict([{"kind": "odd", "x0": 0.5, "x1": 1.0}], samples=5).mean)
"""
    told = run(code, models_folder, url=service.url, absent=(*SERVER, "pandas", "polars"))
    number, mean = told.split()
    assert number == str(version["version"])
    assert float(mean)


def test_the_client_brings_little(wheels: dict[str, Path]) -> None:
    brought = requirements(wheels["credence_client"])
    assert brought == {"httpx", "nanoarrow", "narwhals", "rich", "typer"}
    for name in HEAVY:
        assert name not in brought


def test_all_have_the_version_of_the_package(wheels: dict[str, Path]) -> None:
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
            "pip install ./credence ./credence/scoring '.[export]'",
        ),
        (["serve", "--port", "0"], "pip install ./credence ./credence/scoring ."),
        (["keys", "list"], "pip install ./credence ./credence/scoring ."),
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
