"""Which scope the claims of an OpenID Connect token give.

A rule is `claim=value:scope`. The claim may be a text of words, as `scope` is, a list of texts, or
within another (`realm_access.roles`). The widest scope of all rules that apply counts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.access.hosts import split
from core.access.scopes import Scope

ANY_VALUE = "*"
EXAMPLE = "groups=data-science:train,groups=operations:admin"
_RULE = re.compile(r"(?P<claim>[A-Za-z0-9_.:/-]+)=(?P<value>[^=,:\s]+):(?P<scope>[a-z]+)")


@dataclass(frozen=True)
class Rule:
    """Whoever has `value` in `claim` has `scope`; with `*` whoever has the claim."""

    claim: str
    value: str
    scope: Scope

    def applies(self, claims: Mapping[str, Any]) -> bool:
        """Whether the claims have the value."""
        values = _texts(find_claim(claims, self.claim))
        return bool(values) if self.value == ANY_VALUE else self.value in values


def read_rules(text: str) -> list[Rule]:
    """The rules of `CREDENCE_OIDC_SCOPES`. Raises `ValueError` that quotes a wrong one."""
    return [_rule(entry) for entry in split(text)]


def check_rules(text: str) -> str:
    """The setting itself. Raises `ValueError` that quotes a wrong rule."""
    read_rules(text)
    return text


def scope_of(claims: Mapping[str, Any], rules: Sequence[Rule]) -> Scope | None:
    """The widest scope that a rule gives; None if no rule applies."""
    found = [rule.scope for rule in rules if rule.applies(claims)]
    return max(found, key=list(Scope).index, default=None)


def find_claim(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of this name, or else the one that the dots lead to."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _rule(entry: str) -> Rule:
    found = _RULE.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry!r} is not `claim=value:scope`: give rules such as {EXAMPLE}")
    if found["scope"] not in list(Scope):
        raise ValueError(f"{entry!r}: {found['scope']!r} is no scope: give {', '.join(Scope)}")
    return Rule(found["claim"], found["value"], Scope(found["scope"]))


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
