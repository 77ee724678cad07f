"""The hardwood command."""
