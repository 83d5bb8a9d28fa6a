"""Engines run the tasks of a plan: in threads of this process, or elsewhere behind the same three verbs."""
