"""Many series as one problem: their columns one after the other, from which windows are cut."""
