"""The dashboard: pages that read what the API's routes read, and change things through these."""

from app.routers.pages import datasets, home, jobs, session, system, train

PAGES = (
    home,
    session,
    datasets,
    train,
    jobs,
    system,
)
