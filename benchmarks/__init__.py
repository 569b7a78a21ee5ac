"""How fast, how good and how readable it is: `python -m benchmarks NAME`, then `report` (docs/performance.md)."""
