"""This is what the right function gives: run the broken one."""

number_2 = 50
