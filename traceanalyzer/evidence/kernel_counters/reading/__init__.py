"""Pages of Nsight Compute to columns: CSV, text and reports, whatever version wrote them."""
