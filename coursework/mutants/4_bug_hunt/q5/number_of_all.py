"""Not all of them: e^−40 is small, but float32 can hold it."""

number_5 = 5
