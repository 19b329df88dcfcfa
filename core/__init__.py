"""What API and worker share: settings, database, data sets, jobs, models, storage."""
