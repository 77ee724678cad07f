"""Which robust model is this model's twin, and how the two compare."""
