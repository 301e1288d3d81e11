"""Results above a size, compressed: see `operations`."""
