"""Row 10: a web page lets its own name lead to the service, or names it as it likes."""

from urllib.parse import urlsplit

import pytest

from core.access.hosts import AllowedHosts, check_names, host_name
from core.exceptions import WrongHost
from tests.attacks.sending import ask
from tests.credence.running import Service, serving

EVIL = "Host: evil.example"


@pytest.mark.parametrize("path", ["/models", "/models/", "/health/live", "/metrics", "/", "/ui/x"])
def test_a_forged_host_is_misdirected(open_service: Service, path: str) -> None:
    answer = ask(open_service.url, "GET", path, [EVIL])
    assert answer.status == 421
    assert answer.header("Location") is None
    assert b"CREDENCE_ALLOWED_HOSTS" in answer.body


@pytest.mark.parametrize("path", ["/datasets?name=x", "/predict", "/v2/models/m/infer"])
def test_a_page_under_its_own_name_changes_nothing(open_service: Service, path: str) -> None:
    """What the browser of a victim sends after DNS rebinding: everything is of one origin."""
    headers = [EVIL, "Origin: http://evil.example", "Sec-Fetch-Site: same-origin"]
    answer = ask(open_service.url, "POST", path, [*headers, "Content-Type: text/csv"], b"a\n1\n")
    assert answer.status == 421


@pytest.mark.parametrize(
    "headers",
    [
        [],
        ["Host:"],
        ["Host: localhost", "Host: localhost"],
        ["Host: localhost", EVIL],
        ["Host: localhost/@evil.example"],
        ["Host: user@localhost"],
        ["Host: [::1"],
    ],
)
@pytest.mark.parametrize("path", ["/models", "/predict"])
def test_no_host_two_and_no_name_are_bad_requests(
    open_service: Service, path: str, headers: list[str]
) -> None:
    method = "POST" if path == "/predict" else "GET"
    answer = ask(open_service.url, method, path, headers)
    assert answer.status == 400
    assert b"Host header" in answer.body


def test_a_forged_forwarded_host_is_no_origin(open_service: Service) -> None:
    own = urlsplit(open_service.url).netloc
    headers = [f"Host: {own}", "Origin: http://evil.example", "X-Forwarded-Host: evil.example"]
    answer = ask(open_service.url, "POST", "/datasets?name=x", headers, b"a\n1\n")
    assert answer.status == 403


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST.:80", "127.0.0.1", "[::1]:9", "127.9.9.9"]
)
def test_this_machine_reaches_it_by_its_usual_names(open_service: Service, host: str) -> None:
    assert ask(open_service.url, "GET", "/models", [f"Host: {host}"]).status == 200


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics", "/v2/health/live"])
def test_probes_come_by_any_address(open_service: Service, path: str) -> None:
    assert ask(open_service.url, "GET", path, ["Host: 10.1.2.3:8000"]).status == 200
    assert ask(open_service.url, "GET", "/models", ["Host: 10.1.2.3:8000"]).status == 421


def test_a_redirect_stays_here(open_service: Service) -> None:
    own = urlsplit(open_service.url).netloc
    answer = ask(open_service.url, "GET", "/models/", [f"Host: {own}"])
    assert answer.status in (307, 308)
    assert answer.header("Location") == f"http://{own}/models"


def test_names_that_are_allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("named")
    names = {"CREDENCE_ALLOWED_HOSTS": "credence.example, *.lab.example"}
    with serving(directory, "api", "--host", "0.0.0.0", CREDENCE_AUTH="off", **names) as named:
        url = named.url.replace("0.0.0.0", "127.0.0.1")
        for host, status in {
            "credence.example": 200,
            "Credence.Example:8443": 200,
            "a.lab.example": 200,
            "lab.example": 421,
            "evil-lab.example": 421,
            "127.0.0.1": 200,
            "evil.example": 421,
        }.items():
            assert ask(url, "GET", "/models", [f"Host: {host}"]).status == status, host
        proxied = ["Host: 127.0.0.1", "Origin: https://credence.example"]
        forwarded = [*proxied, "X-Forwarded-Host: credence.example", "Content-Type: text/csv"]
        answer = ask(url, "POST", "/datasets?name=x", forwarded, b"a\n1\n2\n")
        assert answer.status == 201


def test_an_address_is_known_by_the_connection_alone() -> None:
    hosts = AllowedHosts([], "0.0.0.0")
    hosts.check([b"192.0.2.7:8000"], "192.0.2.7")
    hosts.check([b"[2001:db8::7]"], "2001:db8::7")
    hosts.check([b"192.0.2.7"], "::ffff:192.0.2.7")
    with pytest.raises(WrongHost, match=r"not '192\.0\.2\.8'.*CREDENCE_ALLOWED_HOSTS"):
        hosts.check([b"192.0.2.8"], "192.0.2.7")


def test_what_is_no_host_is_named_at_the_start() -> None:
    assert check_names("a.example,*.b.example,::1,[::1],10.0.0.1,*") is not None
    for wrong in ("http://a", "a:80", "a b", "*.*.x", "a*"):
        with pytest.raises(ValueError, match="is not a host: give names and addresses"):
            check_names(wrong)
    assert host_name(b"a,b") is None
