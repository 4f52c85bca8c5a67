"""Lists: what items are ranked by, the search for the best of them, and reasons."""
