"""Files under one root: local disk, memory, and a wrapper that makes either fail on purpose."""
