"""Not two of them: run −120 as well."""

number_5 = 2
