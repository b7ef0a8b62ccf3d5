"""Parts shared by kernels of several families."""
