"""What the command line ends with. 128 + n: stopped by signal n."""

from __future__ import annotations

PASSED = 0
FAILED = 1
"""A gate: findings, budgets or a comparison, and `rules lint` and `rules test`."""
ERROR = 2
"""Wrong usage, or what could not be read or done."""
NOT_JUDGED = 3
INTERRUPTED = 130
