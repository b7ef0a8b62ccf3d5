"""Tuning: space → prune → verify → measure → store, and `select`, the choice at run time."""
