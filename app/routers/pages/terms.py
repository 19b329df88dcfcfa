"""`/ui/help`: what each page is for, the terms, and where the documentation is."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.ui.pages import show
from app.ui.terms import TERMS, anchor

router = APIRouter(include_in_schema=False)


@router.get("/ui/help")
def help_page(request: Request) -> HTMLResponse:
    """The page. It needs no documentation that is served elsewhere."""
    return show(
        request, "help.html", terms=[(anchor(name), name, text) for name, text in TERMS.items()]
    )
