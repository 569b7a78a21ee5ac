"""Where the n examples live."""

from trimlearn.engines.base import Counts, Engine
from trimlearn.engines.local import LocalEngine
from trimlearn.engines.planning import Plan, plan

__all__ = ["Counts", "Engine", "LocalEngine", "Plan", "plan"]
