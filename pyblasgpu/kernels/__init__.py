"""Kernel families: each file holds one Config with its rules and resource formulas, and its factory."""
