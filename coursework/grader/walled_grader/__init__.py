"""A grader for notebooks: it runs what students handed in behind a wall, and judges it outside.

It knows nothing of what is taught: a course is a folder of source notebooks in otter's format.
"""
