"""Other PyTorch releases than the installed one: fetching them, comparing them, checking the tree against them."""
