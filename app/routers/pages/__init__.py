"""The dashboard: pages that read what the API's routes read, and change things through these."""

from app.routers.pages import home, session

PAGES = (home, session)
