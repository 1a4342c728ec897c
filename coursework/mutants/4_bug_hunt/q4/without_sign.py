"""The number has a sign: the lowest is negative."""

number_4 = 65504
