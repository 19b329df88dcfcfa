"""Arrow's kernels. Their stubs know no chunked arrays as results, so here they have no types."""

from typing import Any

import pyarrow.compute

pc: Any = pyarrow.compute
