"""The pages of the dashboard. Their scripts use the API to change things."""

from app.routers.pages import (
    compare,
    datasets,
    expected,
    home,
    jobs,
    models,
    predict,
    session,
    system,
    train,
)

PAGES = (home, session, datasets, train, jobs, models, expected, predict, compare, system)
