"""Calls: checked, run whole, by tiles or as plans, and kept."""
