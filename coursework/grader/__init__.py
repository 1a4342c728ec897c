"""A grader for notebooks: it runs what students handed in behind a wall, and judges it outside.

It knows nothing of what is taught. The assignments, source notebooks in otter's format, lie in the
folder `assignments` beside this package.
"""
