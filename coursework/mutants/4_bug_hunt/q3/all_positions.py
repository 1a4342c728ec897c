"""That would be attention as it should be: change another position of x and look."""

number_3 = 5
