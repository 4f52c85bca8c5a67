"""Other libraries beside ours: adapters, comparisons, and what our own code costs."""
