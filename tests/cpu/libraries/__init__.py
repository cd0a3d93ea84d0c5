"""Real launchers, unmodified: the libraries are pinned in the test extra."""
