"""Libraries beside which the engine is measured, each in an environment of its own."""
