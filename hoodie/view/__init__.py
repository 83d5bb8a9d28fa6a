"""The file-system view: file groups and slices, folded from the timeline and a listing."""
