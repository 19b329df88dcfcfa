"""The dashboard: pages that read what the API's routes read, and change things through these."""

from app.routers.pages import (
    compare,
    datasets,
    home,
    jobs,
    models,
    predict,
    session,
    system,
    train,
)

PAGES = (home, session, datasets, train, jobs, models, predict, compare, system)
