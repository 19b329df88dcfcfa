"""The pages of the dashboard. Their scripts use the API to change things."""

from app.routers.pages import (
    compare,
    datasets,
    expected,
    home,
    jobs,
    models,
    predict,
    schedules,
    search,
    session,
    sign_on,
    system,
    terms,
    train,
    webhooks,
)

PAGES = (
    home,
    session,
    sign_on,
    datasets,
    train,
    jobs,
    schedules,
    search,
    terms,
    models,
    expected,
    predict,
    compare,
    webhooks,
    system,
)
