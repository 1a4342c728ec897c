"""This is the weight of one of the two keys: give both together."""

number_1 = 0.0826
