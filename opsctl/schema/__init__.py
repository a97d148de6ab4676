"""What tables are, what they should be, and the difference."""
