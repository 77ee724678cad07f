"""What the model says, and about which box: trees of any origin as flat arrays."""
