"""Vectors: element by element, and reduced to a number."""
