"""What running the operators has shown: a verdict for every overload and dtype, with its evidence."""
