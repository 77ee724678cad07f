"""What can be proven about a model and a row: distances and certificates."""
