"""Table services as methods: what `HoodieTable` has of them, embedded and on Spark. How each is done: services/, undo/ and repair/."""
