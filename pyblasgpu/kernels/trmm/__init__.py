"""Leaves of TRMM."""
