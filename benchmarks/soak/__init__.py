"""A long run of mixed work against a real service: does anything grow that should not?"""
