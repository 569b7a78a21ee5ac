"""What `trim` gives back: the module, and what was found out about every example."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import torch
from scipy.special import expit
from torch import nn

from trimlearn.inference.outlier_table import OutlierTable
from trimlearn.inference.table import Findings, make_table, plain_kinds
from trimlearn.plots.canvas import axes, colours
from trimlearn.robust.labels.verdict import LabelVerdict
from trimlearn.robust.scale import p_values
from trimlearn.torch.epochs import Epochs
from trimlearn.torch.labels import log_probabilities
from trimlearn.torch.level import LossScale
from trimlearn.torch.stages import EpochRecord
from trimlearn.torch.targets import Labels

MOST_NUMBERS = 15  # classes up to which the matrix has numbers, as in trimlearn.plots: more would touch


@final
@dataclass(frozen=True)
class LossMeasure:
    """Losses of which nothing is known but that small is good."""

    scale: LossScale

    def scores(self, epochs: Epochs, module: nn.Module) -> np.ndarray:
        """Of all examples of ``epochs``, by the module: larger is worse."""
        return self.scale.scores(epochs.evaluate(module, torch.arange(epochs.examples.n)).losses)

    def findings(self, result: TrimResult) -> Findings:
        """What the table says of the examples of the fit."""
        score = result.outlier_scores_
        return Findings(score, p_values(score), plain_kinds(~result.inlier_mask_))


@final
@dataclass(frozen=True)
class LabelMeasure:
    """Labels: the log-odds that one is wrong, given the noise that was found."""

    verdict: LabelVerdict
    rows: np.ndarray
    labels: Labels

    def scores(self, epochs: Epochs, module: nn.Module) -> np.ndarray:
        """The same."""
        assert epochs.labels is not None
        log_p = log_probabilities(epochs.evaluate(module, torch.arange(epochs.examples.n)).classes)
        return self.verdict.noise.as_it_is.score([log_p], epochs.labels.codes)

    def findings(self, result: TrimResult) -> Findings:
        from trimlearn.estimators.label_assessment import LabelAssessment

        found, given = LabelAssessment.of(self.verdict), self.labels.codes

        def filled(part: np.ndarray, rest: Any) -> np.ndarray:
            whole = np.broadcast_to(np.asarray(rest, dtype=part.dtype), given.shape).copy()
            whole[self.rows] = part
            return whole

        whole = LabelAssessment(
            filled(found.score, np.inf),
            filled(found.probability, 1.0),
            filled(found.p_value, 0.0),
            filled(found.suggested, given),
            filled(found.confidence, np.nan),
        )
        return whole.findings(given, self.labels.names, ~result.inlier_mask_)


Measure = LossMeasure | LabelMeasure  # how the losses of an example become its score


@final
@dataclass(frozen=True)
class TrimResult:
    """What `trim` found.

    Parameters
    ----------
    module : Module
        The module that was given, fitted.
    weights_ : ndarray of shape (n,)
        1 for the examples that count, 0 for those that do not.
    inlier_mask_ : ndarray of shape (n,)
        Which examples count.
    outlier_scores_ : ndarray of shape (n,)
        Larger is worse. With labels, the log-odds that a label is wrong, by models that have not seen it; else
        deviations of a normal law, so that 3 is rare.
    contamination_ : float
        The share of bad examples: as given, or estimated.
    threshold_ : float
        The score beyond which an example does not count.
    history_ : list of EpochRecord
        What every epoch did.
    n_invalid_ : int
        How many examples had no finite loss.
    stopped_ : bool
        Whether the callback ended the fit early.
    noise_matrix_ : ndarray of shape (K, K), or None
        With labels: [k, j] = P(labelled j | of class k).
    suggested_labels_ : ndarray of shape (n,), or None
        With labels: the label itself, unless it is more likely wrong than right.

    See Also
    --------
    trim : Makes it.

    Examples
    --------
    >>> import torch
    >>> from trimlearn.torch.trim import trim
    >>> x = torch.linspace(-1, 1, 200)[:, None]
    >>> y = 3 * x[:, 0] + 0.1 * torch.sin(50 * x[:, 0])
    >>> y[::10] += 20
    >>> loss = lambda out, y: (out[:, 0] - y) ** 2
    >>> result = trim(torch.nn.Linear(1, 1), loss, (x, y), 0.1, epochs=60, progress=False)
    >>> result
    TrimResult: 20 of 200 examples do not count (contamination 10.0%)
    >>> bool(result.outlier_scores_[::10].min() > result.threshold_)
    True
    """

    module: nn.Module
    weights_: np.ndarray
    inlier_mask_: np.ndarray
    outlier_scores_: np.ndarray
    contamination_: float
    threshold_: float
    history_: list[EpochRecord]
    n_invalid_: int
    stopped_: bool
    noise_matrix_: np.ndarray | None
    suggested_labels_: np.ndarray | None
    _measure: Measure = field(repr=False)
    _epochs_of: Callable[[Any], Epochs] = field(repr=False)

    def __repr__(self) -> str:
        n, off = len(self.weights_), int(np.sum(~self.inlier_mask_))
        early = "; ended early by the callback" if self.stopped_ else ""
        return f"TrimResult: {off} of {n} examples do not count (contamination {self.contamination_:.1%}){early}"

    @property
    def outlier_probability_(self) -> np.ndarray | None:
        """With labels: the probability that each is wrong."""
        return None if self.noise_matrix_ is None else np.asarray(expit(self.outlier_scores_), dtype=np.float64)

    def outlier_score(self, dataset: Any) -> np.ndarray:
        """Score examples, seen or not, by the fitted module; larger is worse, as in ``outlier_scores_``.

        Parameters
        ----------
        dataset : Dataset, or tuple of tensors
            Examples with their targets, as they were given to `trim`.

        Returns
        -------
        ndarray of shape (m,)
            The scores. The module has seen the examples of the fit: what it says of those is too good.
        """
        with torch.random.fork_rng([]):  # a loader draws, even where nothing is random
            return self._measure.scores(self._epochs_of(dataset), self.module)

    def table(self, names: Any = None) -> OutlierTable:
        """List the examples, worst first.

        Parameters
        ----------
        names : array-like of shape (n,), optional
            What the examples are called, such as their files.

        Returns
        -------
        OutlierTable
            Columns as in ``outlier_table()`` of a trimmed estimator.
        """
        return make_table(self._measure.findings(self), self.weights_, index=names)

    def plot_scores(self, ax: Any = None) -> Any:
        """Draw the scores of all examples and the threshold.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        Axes
            Those drawn into.
        """
        ax = axes(ax)
        palette = colours(ax)
        scores, kept = self.outlier_scores_, self.inlier_mask_
        finite = scores[np.isfinite(scores)]
        top = float(finite.max()) if len(finite) else 1.0
        shown = np.where(np.isfinite(scores), scores, top)
        rows = np.arange(len(scores))
        ax.plot(rows[kept], shown[kept], ".", ms=3, color=palette.accent, label="counts")
        ax.plot(rows[~kept], shown[~kept], "x", ms=4, color=palette.bad, label="does not count")
        if np.isfinite(self.threshold_):
            ax.axhline(self.threshold_, lw=1, color=palette.doubt)
        said = "log-odds that the label is wrong" if self.noise_matrix_ is not None else "score, in normal deviations"
        ax.set(xlabel="example", ylabel=said)
        ax.legend(frameon=False)
        return ax

    def plot_history(self, ax: Any = None) -> Any:
        """Draw the objective by epochs, a line for each stage of the fit.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        Axes
            Those drawn into.
        """
        ax = axes(ax)
        at = 0
        for stage in dict.fromkeys(record.stage for record in self.history_):
            values = [record.objective for record in self.history_ if record.stage == stage]
            ax.plot(np.arange(at, at + len(values)) + 1, values, "o-", ms=3, label=stage)
            at += len(values)
        ax.set(xlabel="epoch", ylabel="mean loss")
        ax.legend(frameon=False, fontsize="small")
        return ax

    def plot_noise_matrix(self, ax: Any = None) -> Any:
        """Draw which classes are mistaken for which.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; None makes a new figure.

        Returns
        -------
        Axes
            Those drawn into.
        """
        if self.noise_matrix_ is None:
            raise ValueError("there is no noise matrix: the targets of this fit are no labels.")
        ax = axes(ax)
        T = self.noise_matrix_
        ax.imshow(np.where(np.eye(len(T)) > 0, np.nan, T), cmap="Reds", vmin=0)
        for k, j in np.ndindex(*T.shape) if len(T) <= MOST_NUMBERS else ():
            ax.text(j, k, f"{100 * T[k, j]:.0f}", ha="center", va="center", fontsize="small")
        ax.set(xlabel="labelled", ylabel="of class", xticks=range(len(T)), yticks=range(len(T)))
        return ax
