"""Leaves of TRSM."""
