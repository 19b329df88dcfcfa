"""The process that trains models and runs other jobs."""

import os

# scikit-learn cuts columns into bins in joblib's threads, and each changes the filters of warnings.
# CPython has them once for all threads: in this race the process lost all 11 within 40 fits by
# eight threads, and wrote thousands of warnings. Set before its import, joblib takes no threads.
os.environ.setdefault("JOBLIB_MULTIPROCESSING", "0")
