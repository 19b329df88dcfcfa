"""What service and worker must agree on: settings, data sets, jobs, registry, queue."""
