"""This is the number of keys of the second query."""

number_1 = 3
