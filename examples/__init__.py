"""Programs that use the service and the estimators."""
