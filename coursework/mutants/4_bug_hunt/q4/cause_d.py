"""Not (d): each step reads the row of the token before it."""

cause_4 = "d"
