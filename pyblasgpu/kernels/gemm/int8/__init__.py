"""DGEMM on INT8 tensor cores: integers modulo small numbers, by the Chinese remainder theorem."""
