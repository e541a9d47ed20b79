"""What kernels could be: floating-point operations and bytes of operators from their shapes, beside what the GPU gives."""
