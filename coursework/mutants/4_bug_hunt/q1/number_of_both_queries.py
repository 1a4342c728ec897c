"""This is the number of keys of both queries together."""

number_1 = 4
