"""What the reader of a page may see and change."""

from typing import cast

from fastapi import Request

from app.access.key_ring import KeyRing
from app.schemas.card import CardResponse
from core.access.callers import EVERYBODY
from core.access.keys import Scope
from core.context import Context
from core.database.schema import Json
from core.exceptions import NotOwner
from core.registry import cards
from core.registry.registry import Version


def may_train(request: Request) -> bool:
    """Whether the reader may train models and read cards."""
    return cast(KeyRing, request.app.state.key_ring).permits(request.scope, Scope.TRAIN)


def may_operate(request: Request) -> bool:
    """Whether the reader may see what the service does for all callers."""
    return cast(KeyRing, request.app.state.key_ring).permits(request.scope, Scope.ADMIN)


def may_change(request: Request, context: Context, version: Version) -> bool:
    """Whether the reader may move aliases and delete versions. Readers of shared models may not."""
    view = context.caller.view
    return may_train(request) and (view.sees_all or version.owner in (EVERYBODY, view.owner))


def may_label(context: Context, model: str) -> bool:
    """Whether the reader may send true values. Readers of shared models may not."""
    try:
        context.feedback.check(model, None)
    except NotOwner:
        return False
    return True


def card_of(request: Request, context: Context, version: Version) -> Json | None:
    """The card of a version. It describes training rows: None if the reader may not train."""
    if not may_train(request):
        return None
    card = CardResponse.model_validate(cards.read(context, version))
    return card.model_dump(mode="json")
