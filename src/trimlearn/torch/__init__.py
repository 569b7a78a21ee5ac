"""Networks, and any differentiable loss, trimmed: needs PyTorch, ``pip install 'trimlearn[torch]'``.

`TorchLoss` makes one loss per example a term of `trimlearn.Problem`, `Trimmer` trims in a training loop of your own,
and `trim` trains a module and says which examples are wrong.
"""

from trimlearn.torch.indexed import Indexed
from trimlearn.torch.loss import TorchLoss
from trimlearn.torch.trimmer import Trimmer

__all__ = ["Indexed", "TorchLoss", "Trimmer"]
