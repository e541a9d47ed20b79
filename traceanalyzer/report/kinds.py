"""What kinds of work are called on the page."""

from __future__ import annotations

FAMILIES = {
    "matmul": "matrix products",
    "matvec": "matrix-vector products",
    "convolution": "convolutions",
    "depthwise": "depthwise convolutions",
    "elementwise": "elementwise",
    "reduction": "reductions",
    "layout": "change of layout",
    "optimizer": "optimizer",
    "copy": "copy kernels, casts, fills",
    "indexing": "gather, scatter, embedding",
    "sorting": "sorting, scans",
    "random": "random numbers",
    "pooling": "pooling, resampling",
    "other": "kernels of unknown kind",
}
"""Families of kernels whose own names do not say it plainly."""
