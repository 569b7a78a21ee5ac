"""How fast SMART is: `python -m benchmarks floor|rates|growth|small`, then `report` (docs/performance.md)."""
