"""Where the best worst-case split is."""
