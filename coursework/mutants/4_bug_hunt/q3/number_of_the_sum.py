"""This is the sum of the losses."""

number_3 = 4
