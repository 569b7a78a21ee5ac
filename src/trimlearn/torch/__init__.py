"""Trimming for PyTorch: any module, any loss of examples. It needs torch, which trimlearn does without elsewhere."""

from trimlearn.torch.result import TrimResult
from trimlearn.torch.stages import EpochRecord
from trimlearn.torch.trim import trim

__all__ = ["EpochRecord", "TrimResult", "trim"]
