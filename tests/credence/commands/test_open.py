"""The page of a model, a job or a data set; a browser is any program in BROWSER."""

import httpx
import pytest

from credence.client import Client
from credence.types import Version
from tests.credence.running import Service, credence


def printed(service: Service, *what: str) -> str:
    done = credence("open", *what, "--print", url=service.url)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("what", ["model", "job", "dataset"])
def test_the_address_is_that_of_a_page(service: Service, version: Version, what: str) -> None:
    address = printed(service, version[what])  # type: ignore[literal-required]
    assert httpx.get(address, timeout=100).status_code == 200
    assert address.startswith(f"{service.url}/ui/{what}s/{version[what]}")  # type: ignore[literal-required]


def test_a_version_is_found_by_its_alias(
    service: Service, client: Client, version: Version
) -> None:
    client.set_alias("small", "trusted", 1)
    assert printed(service, "small", "--version", "trusted").endswith("/small/versions/1")


def test_without_a_name_it_is_what_the_newest_job_has_made(
    service: Service, client: Client, version: Version
) -> None:
    request = {"model": "newest", "dataset": version["dataset"], "target": "y"}
    request |= {"network": {"hidden": [4]}, "training": {"epochs": 1}, "pruning": []}
    job = client.wait(client.submit_train(request)["id"], poll_seconds=0.1)
    assert printed(service).endswith(f"/ui/models/newest/versions/{job['version']}")
    evaluation = client.submit_evaluate("small", {"version": 1, "dataset": version["dataset"]})
    assert printed(service).endswith(f"/ui/jobs/{evaluation['id']}")


def test_a_browser_gets_the_address(service: Service, version: Version) -> None:
    done = credence("open", "small", url=service.url, BROWSER="echo browser %s")
    assert done.stdout == f"browser {service.url}/ui/models/small/versions/1\n"
    assert "opened" in done.stderr
    none = credence("open", "small", url=service.url, BROWSER="nosuchbrowser")
    assert none.stdout == f"{service.url}/ui/models/small/versions/1\n"


def test_what_does_not_exist_is_refused(service: Service) -> None:
    done = credence("open", "nosuch", "--print", url=service.url)
    assert done.returncode == 1
    assert "nosuch" in done.stderr
