"""The dashboard: pages that read what the API's routes read, and change things through these."""

from app.routers.pages import (
    compare,
<<<<<<< HEAD
=======
    datasets,
    home,
    jobs,
    models,
    predict,
    session,
    system,
    train,
)

PAGES = (
    home,
    session,
>>>>>>> views
    datasets,
    home,
    jobs,
    models,
    predict,
<<<<<<< HEAD
    session,
=======
    compare,
>>>>>>> views
    system,
    train,
)
<<<<<<< HEAD

PAGES = (home, session, datasets, train, jobs, models, predict, compare, system)
=======
>>>>>>> views
