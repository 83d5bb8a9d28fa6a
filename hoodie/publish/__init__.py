"""How the files of an instant become visible, or never do."""
