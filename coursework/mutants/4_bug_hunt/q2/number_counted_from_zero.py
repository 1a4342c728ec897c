"""This is the bias for a distance of 1: query 0 and key 2 are two places apart."""

number_2 = 20
