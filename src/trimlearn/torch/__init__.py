"""Networks, and any differentiable loss, trimmed: needs PyTorch, ``pip install 'trimlearn[torch]'``.

`trim` trains a module and says which examples are wrong, `Trimmer` trims in a training loop of your own, and
`TorchLoss` makes one loss per example a term of `trimlearn.Problem`.
"""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError('trimlearn.torch needs PyTorch: pip install "trimlearn[torch]".')

from trimlearn.torch.indexed import Indexed
from trimlearn.torch.loss import TorchLoss
from trimlearn.torch.result import TrimResult
from trimlearn.torch.stages import EpochRecord
from trimlearn.torch.trim import trim
from trimlearn.torch.trimmer import Trimmer

__all__ = ["EpochRecord", "Indexed", "TorchLoss", "TrimResult", "Trimmer", "trim"]
