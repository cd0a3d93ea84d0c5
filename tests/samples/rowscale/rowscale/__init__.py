"""Scale and gather the rows of a batch: a small package with its own launchers, audited as it is."""

from rowscale.launchers import gather_rows, scale_rows

__all__ = ["gather_rows", "scale_rows"]
