"""This is the bias of a key at the same place."""

number_2 = 30
