"""At least one token is lost: run the function and compare with the chain 4, 3, 2, 1, 0."""

number_4 = 0
