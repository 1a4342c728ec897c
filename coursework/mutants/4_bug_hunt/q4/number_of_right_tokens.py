"""This is the number of tokens that are right."""

number_4 = 3
