"""Not (a): the result contains what follows the start token, as it should."""

cause_4 = "a"
