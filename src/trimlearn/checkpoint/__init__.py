"""What a run needs to go on as if it had never stopped: of one solve, and of a fit that makes several."""

from trimlearn.checkpoint.run import Checkpoint, Clock, RunFile

__all__ = ["Checkpoint", "Clock", "RunFile"]
