"""The parts of sign-on that the settings ask for."""

from dataclasses import dataclass

from app.access.oidc.code_flow import CodeFlow
from app.access.oidc.provider import Provider
from app.access.oidc.tokens import Tokens
from core.access.claims import read_rules
from core.exceptions import InvalidSetting
from core.settings import Settings, read_secret


@dataclass(frozen=True)
class SignOn:
    """The provider, the tokens that it signs, and how people sign in to the dashboard.

    Args:
        code_flow: None if the settings name no client.
    """

    provider: Provider
    tokens: Tokens
    code_flow: CodeFlow | None

    @classmethod
    def of(cls, settings: Settings) -> "SignOn | None":
        """None if no provider is set. Raises `InvalidSetting` if the secret cannot be read."""
        if settings.oidc_issuer is None or settings.oidc_audience is None:
            return None
        provider = Provider(settings.oidc_issuer)
        client = settings.oidc_client_id
        audiences = [settings.oidc_audience, *([client] if client else [])]
        rules = read_rules(settings.oidc_scopes)
        tokens = Tokens(provider, audiences, rules, settings.oidc_owner)
        flow = client and CodeFlow(provider, tokens, client, _secret(settings))
        return cls(provider, tokens, flow or None)


def _secret(settings: Settings) -> str | None:
    path = settings.oidc_client_secret_file
    try:
        return None if path is None else read_secret(path)
    except ValueError as error:
        name = f"CREDENCE_OIDC_CLIENT_SECRET_FILE={path}"
        raise InvalidSetting(f"{name}: {error}") from None
