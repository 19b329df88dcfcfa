"""Secrets that were planted come out nowhere: not where faults are told, not where none are."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import httpx
import psutil
import pytest
import redis
import yaml

from core.access.keys import Keys, Scope
from core.database.database import Database
from core.settings import load_settings
from tests.core.postgresql import running_postgresql
from tests.core.redis_server import running_redis
from tests.credence.running import credence, serving

PATHS = (
    "/models", "/jobs", "/datasets", "/webhooks", "/audit", "/ui/webhooks", "/openapi.json",
    "/metrics", "/health/ready", "/v2/models/none", "/nowhere",
)  # fmt: skip


@pytest.fixture
def planted() -> dict[str, str]:
    """What nobody may read; the characters are such that URLs have to quote them."""
    names = ("database", "broker", "admin", "guessed", "aws")
    return {name: f"{name}:p/w@{secrets.token_hex(12)}" for name in names}


@pytest.fixture
def settings(planted: dict[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """A database and a broker, real ones, that want these passwords."""
    (tmp_path / "admin").write_text(planted["admin"])
    with running_postgresql() as url, running_redis(tmp_path) as server:
        with redis.Redis.from_url(server.url) as client:
            client.config_set("requirepass", planted["broker"])
        database, broker = (quote(planted[name], safe="") for name in ("database", "broker"))
        yield {
            "CREDENCE_DATABASE_URL": url.replace("credence@", f"credence:{database}@"),
            "CREDENCE_BROKER_URL": server.url.replace("redis://", f"redis://:{broker}@"),
            "CREDENCE_ADMIN_KEY_FILE": str(tmp_path / "admin"),
            "AWS_ACCESS_KEY_ID": "AKIAPLANTED",
            "AWS_SECRET_ACCESS_KEY": planted["aws"],
            "CREDENCE_LOG_LEVEL": "debug",
            "CREDENCE_WEBHOOKS": "hooks.example.org",
        }


def found(planted: dict[str, str], text: str) -> list[str]:
    """The names of the secrets in a text, as they are or as URLs have them."""
    return [name for name, s in planted.items() if s in text or quote(s, safe="") in text]


def asked(url: str, planted: dict[str, str]) -> Iterator[str]:
    """Every answer, headers and all: with the key, with a wrong one, and without."""
    with httpx.Client(base_url=url, timeout=120) as http:
        for key in (planted["admin"], planted["guessed"], None):
            headers = {} if key is None else {"Authorization": f"Bearer {key}"}
            answers = [http.get(path, headers=headers) for path in PATHS]
            answers.append(http.post("/train", json={"model": "m"}, headers=headers))
            for answer in answers:
                yield f"{answer.status_code} {answer.headers} {answer.text}"


def webhook_secret(url: str, key: str) -> str:
    """Of a new webhook: the one response that has it."""
    body = {"url": "https://hooks.example.org/a", "events": ["job.failed"]}
    headers = {"Authorization": f"Bearer {key}"}
    made = httpx.post(f"{url}/webhooks", json=body, headers=headers, timeout=120)
    return str(made.json()["secret"])


@pytest.mark.slow
def test_no_secret_comes_out(
    settings: dict[str, str], planted: dict[str, str], tmp_path: Path
) -> None:
    told: dict[str, str] = {}
    url = settings["CREDENCE_DATABASE_URL"]
    database = Database(load_settings(database_url=url).sqlalchemy_url)
    with serving(tmp_path, "api", **settings) as service:
        _, planted["made"] = Keys(database).create("me", Scope.TRAIN)
        database.dispose()
        planted["webhook"] = webhook_secret(service.url, planted["admin"])
        told["answers"] = "\n".join(asked(service.url, planted))
        told["command line"] = " ".join(psutil.Process(service.process.pid).cmdline())
        server = settings["CREDENCE_BROKER_URL"].partition("@")[2]
        wrong = f"redis://:{quote(planted['guessed'], safe='')}@{server}"
        doctor = credence(
            "doctor", "--json", "--data-dir", str(tmp_path / "data"),
            **{**settings, "CREDENCE_BROKER_URL": wrong},
        )  # fmt: skip
        assert doctor.returncode == 1
        states = {check["check"]: check["state"] for check in json.loads(doctor.stdout)["checks"]}
        assert (states["broker"], states["database"]) == ("broken", "good")
        told["doctor"] = doctor.stdout + doctor.stderr
        listening = Path(url.partition("?host=")[2])
        (listening / ".s.PGSQL.5432").rename(listening / "hidden")
        told["answers without a database"] = "\n".join(asked(service.url, planted))
        (listening / "hidden").rename(listening / ".s.PGSQL.5432")
    told["log"] = service.log_file.read_text()
    for name in ("DATABASE", "BROKER"):
        value = settings[f"CREDENCE_{name}_URL"].replace("://", "+no://")
        refused = credence("api", "--port", "0", **{**settings, f"CREDENCE_{name}_URL": value})
        assert refused.returncode == 2
        told[f"a wrong {name} URL"] = refused.stdout + refused.stderr
    assert {where: names for where, text in told.items() if (names := found(planted, text))} == {}
    assert "401" in told["answers"]
    assert "503" in told["answers without a database"]


def test_the_stacks_containers_have_no_secret_in_their_environment() -> None:
    """`docker inspect` shows the environment to whoever may ask; secrets come as files."""
    root = Path(__file__).parents[3]
    services = yaml.safe_load((root / "docker-compose.yml").read_text())["services"]
    given = [service.get("environment") or {} for service in services.values()]
    assert any(given)
    for variable, value in (pair for each in given for pair in each.items()):
        if any(word in variable for word in ("PASSWORD", "SECRET", "TOKEN", "KEY")):
            assert str(value).startswith("/run/secrets/"), variable
        assert "://" not in str(value) or urlsplit(value).password is None, variable
