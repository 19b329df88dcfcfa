"""Published examples, run again by this project: results beside the references."""
