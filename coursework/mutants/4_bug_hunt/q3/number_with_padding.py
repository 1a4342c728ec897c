"""This counts the padding: the sequence of length 1 has one token."""

number_3 = 0.67
