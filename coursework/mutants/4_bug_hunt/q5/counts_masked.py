"""This counts the masked weights: most of them are 0, not NaN."""

number_5 = 10
