"""Attacks: how a row is changed so that the model errs."""
