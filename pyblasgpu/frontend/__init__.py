"""Any array in, operands out: checks, layouts, staging, the cache of calls, the CPU backend."""
