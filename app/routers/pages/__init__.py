"""The dashboard: pages that read what the API's routes read, and change things through these."""

from app.routers.pages import compare, home, models, predict, session

PAGES = (home, models, predict, compare, session)
