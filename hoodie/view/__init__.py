"""An open table, and its files as one timeline sees them: groups and slices, folded from that and a listing."""
