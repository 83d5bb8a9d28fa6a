"""Options: text at the doors, frozen values below them."""
