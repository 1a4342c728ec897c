"""Not all scores change: only those of the padding."""

number_2 = 8
