"""The CPU backends of host arrays."""
