"""The GEMM kernels, and TRMM and TRSM fused into them."""
