"""How trees add up: arrays and parameters in, Trees out."""
