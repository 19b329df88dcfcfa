"""Real engines: `make test-engines` installs them; elsewhere these tests are skipped."""
