"""`trim`: any module and any loss of examples, fitted to those that belong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from trimlearn._utils.validation import check_count
from trimlearn._utils.warn import warn
from trimlearn.progress import watching
from trimlearn.robust.labels.noise import LabelNoise
from trimlearn.robust.labels.verdict import MATERIAL, LabelVerdict
from trimlearn.robust.verdict import Verdict
from trimlearn.torch.criterion import Criterion
from trimlearn.torch.data import Batch, NumberedExamples, examples_of
from trimlearn.torch.doubts import doubt_of_flagged
from trimlearn.torch.epochs import Epochs, Objective, seeded
from trimlearn.torch.halves import FOLDS, Halves
from trimlearn.torch.labels import judge_halves, log_probabilities, soft_labels
from trimlearn.torch.level import LossScale, judge_examples
from trimlearn.torch.modes import training
from trimlearn.torch.probe import try_examples
from trimlearn.torch.recipe import LearnerRecipe
from trimlearn.torch.result import LabelMeasure, LossMeasure, Measure, TrimResult
from trimlearn.torch.settings import Settings, dtype_of, module_device
from trimlearn.torch.stages import EpochPlan, EpochRecord, TrainingRun, still_falling
from trimlearn.torch.targets import Labels
from trimlearn.torch.trimming import TrimmedEpochs, weight_set

JUDGED = 0.5  # of the epochs, for each of the two trainings of the judges: with the fit itself twice the plain time
# The same where the level is known: with the fit to what is kept 1.4 times the plain time at most. Labels are judged in
# two trainings, other targets in one.
JUDGED_LABELS, JUDGED_NUMBERS = 0.2, 0.3
JUDGE_STEPS = 200  # that a judge makes at least, if the fit makes as many: Adam moves a weight by 0.2 in them
UNTRAINED = (
    "no example was found to be wrong, but the loss was still falling when the epochs ended: a network that has not "
    "learnt yet cannot tell; use more epochs or a larger learning rate."
)
UNLEARNT = (
    "the loss was still falling when the epochs ended: what was trimmed may be what the network has not learnt yet, "
    "rather than wrong; use more epochs or a larger learning rate."
)
SIMPLE = (
    "{share:.0%} of the labels look like a module that is too simple or not trained enough, not like wrong labels: a "
    "forest or the nearest neighbours explain them. {which} are taken to be right; use more epochs or a larger module."
)


def trim(
    module: nn.Module,
    loss_fn: Callable[[Any, Any], Tensor],
    dataset: Any,
    contamination: float | str = "auto",
    *,
    optimizer: Any = None,
    scheduler: Any = None,
    scheduler_every: str = "epoch",
    epochs: int | str = "auto",
    batch_size: int | str = "auto",
    accumulate: int = 1,
    gradient: str = "plain",
    precision: str = "float32",
    labels: bool | None = None,
    groups: Any = None,
    device: Any = None,
    num_workers: int = 0,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    seed: int = 0,
    callback: Callable[[EpochRecord], Any] | None = None,
    checkpoint: Any = None,
    resume: bool = True,
    progress: bool = True,
) -> TrimResult:
    """Fit a module to the examples that belong, and say which do not.

    With labels, networks that have not seen an example judge its label; a noise matrix tells wrong labels from classes
    that overlap, and the module learns what the labels should have been. With other targets, the examples of smallest
    loss are kept, h falling to its target.

    Parameters
    ----------
    module : Module
        What is fitted, in place. It should not have seen these targets before.
    loss_fn : callable
        loss_fn(module(x), y) gives one loss per example: reduction="none".
    dataset : Dataset, tensor, or tuple of tensors or arrays
        A map-style Dataset of (x, y), or the tensors themselves, the target last. An example of one part is its own
        target, as an autoencoder wants it; several inputs are the module's arguments.
    contamination : float, int or "auto", default="auto"
        The share of bad examples in [0, 1), or their number; "auto" estimates it.
    optimizer : Optimizer or callable, optional
        An optimizer of module.parameters(), or a function of the parameters that makes one. None: Adam, its rate
        falling to 0 along a cosine.
    scheduler : LRScheduler or callable, optional
        A scheduler of that optimizer, or a function of the optimizer that makes one.
    scheduler_every : {"epoch", "batch"}, default="epoch"
        When the scheduler steps.
    epochs : int or "auto", default="auto"
        Passes over the examples that count. Where the level is to be estimated, judges take as many again, and half
        as many more without labels; where it is known, three or four tenths. On small data they take more.
    batch_size : int or "auto", default="auto"
        NumberedExamples of a batch.
    accumulate : int, default=1
        Batches whose gradients are added up to one step.
    gradient : {"plain", "variance-reduced"}, default="plain"
        "variance-reduced" corrects every batch by SMART's snapshot, at about three times the cost. Dropout, batch norm
        and random augmentation make it void: gradients are plain then, and a warning says so.
    precision : {"float32", "bfloat16", "float16"}, default="float32"
        Of the forward pass: mixed precision.
    labels : bool, optional
        Whether targets are labels of classes; None: as they look.
    groups : array-like of shape (n,), optional
        With a known level: every group keeps its share, so that none is wiped out.
    device : device, optional
        Where to compute; None: where the module is.
    num_workers : int, default=0
        Processes that load examples.
    collate_fn : callable, optional
        Makes a batch of a list of examples, as DataLoader's.
    seed : int, default=0
        Of batches, halves and dropout.
    callback : callable, optional
        Called with the `EpochRecord` of every epoch; True ends the fit.
    checkpoint : path or Checkpoint, optional
        A file to save the fit to, and to go on from.
    resume : bool, default=True
        Whether to go on from that file, if it is there.
    progress : bool, default=True
        Whether to show what is being done.

    Returns
    -------
    TrimResult
        The module, and what was found out about every example.

    See Also
    --------
    trimlearn.label_errors : Judges labels by probabilities you have already.
    trimlearn.TrimmedEstimator : The same idea for scikit-learn's estimators.

    References
    ----------
    G. Patrini, A. Rozza, A. K. Menon, R. Nock and L. Qu (2017), Making deep neural networks robust to label noise: a
    loss correction approach, CVPR.

    Examples
    --------
    >>> import torch
    >>> _ = torch.manual_seed(0)
    >>> x = torch.randn(600, 2)
    >>> truth = (x[:, 0] > 0).long()
    >>> x = x + 4 * torch.nn.functional.one_hot(truth, 2)
    >>> y = torch.where(torch.arange(600) % 5 == 0, 1 - truth, truth)
    >>> module = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    >>> result = trim(module, torch.nn.CrossEntropyLoss(reduction="none"), (x, y), epochs=20, progress=False)
    >>> round(result.contamination_, 1), bool((~result.inlier_mask_[::5]).mean() > 0.9)
    (0.2, True)
    """
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable with an EpochRecord, got {type(callback).__name__}.")
    if num_workers != 0:
        check_count(num_workers, "num_workers")
    settings = Settings(contamination, epochs, batch_size, accumulate, gradient, precision, scheduler_every, seed)
    where = module_device(module, device, dataset)
    module.to(where)
    again = partial(examples_of, device=where, num_workers=num_workers, collate_fn=collate_fn, dtype=dtype_of(module))
    # What is drawn beside the epochs, by a dataset that augments or a loader, is no more the user's than they are.
    with training(module), seeded(where, seed):
        examples, criterion = again(dataset), Criterion(loss_fn)
        found = try_examples(module, criterion, examples, labels)
        passes = settings.epochs_on(examples, criterion, found, module)
        recipe = LearnerRecipe(module, optimizer, scheduler, scheduler_every == "batch")
        fit = _Fit(passes, recipe, settings, groups, examples.n)
        saved = settings.saved_run(checkpoint, resume, module, examples)
        with watching(progress, "trim"):
            return fit.run(TrainingRun(passes, callback, saved), partial(_epochs_of, passes, again))


class _Fit:
    """One call of `trim`: which rows are there, and which of the two ways is taken."""

    def __init__(self, epochs: Epochs, recipe: LearnerRecipe, settings: Settings, groups: Any, n: int) -> None:
        self.epochs, self.recipe, self.settings = epochs, recipe, settings
        self.module: nn.Module = recipe.own[0]
        self.count = settings.count(n, epochs)
        self.level = settings.level(n)
        self.groups = settings.groups(groups, n)
        first = epochs.evaluate(self.module, torch.arange(n)).losses
        self.rows = np.flatnonzero(np.isfinite(first))
        self.invalid = n - len(self.rows)
        _warn_of_invalid(self.invalid, n, n if self.level is None else n * self.level)
        if len(self.rows) < FOLDS and self.level != 0:
            raise ValueError("one example alone cannot be judged by others: give two at least, or contamination=0.")
        # Of those that are left; what has no finite loss is among the trimmed.
        self.share = None if self.level is None else min(1.0, n * (1 - self.level) / len(self.rows))

    def run(self, run: TrainingRun, epochs_of: Callable[[Any], Epochs]) -> TrimResult:
        labels = self.epochs.labels
        fitted = self._labels(run, labels) if labels is not None else self._numbers(run)
        weights, scores, threshold, level, measure = fitted
        self._warn_if_untrained(run, weights)
        verdict = measure.verdict if isinstance(measure, LabelMeasure) else None
        suggested = None
        if verdict is not None and labels is not None:
            codes = labels.codes.copy()
            codes[self.rows] = verdict.suggested
            suggested = labels.names[codes]
        n = self.epochs.examples.n
        bad = level * len(self.rows) / n + self.invalid / n if self.level is None else level
        return TrimResult(
            module=self.module,
            weights_=self._spread(weights, 0.0),
            inlier_mask_=self._spread(weights, 0.0) > 0,
            outlier_scores_=self._spread(scores, np.inf),
            contamination_=float(bad),
            threshold_=threshold,
            history_=run.history,
            n_invalid_=self.invalid,
            stopped_=run.stopped,
            noise_matrix_=None if verdict is None else verdict.noise.T,
            suggested_labels_=suggested,
            _measure=measure,
            _epochs_of=epochs_of,
        )

    def _warn_if_untrained(self, run: TrainingRun, weights: np.ndarray) -> None:
        """UserWarning where the module has learnt too little to tell what is wrong."""
        if run.stopped or self.share == 1 or not still_falling(run.history):
            return
        none = bool(np.all(weights > 0))
        if self.share is not None or (self.epochs.labels is None and not none):
            warn(UNLEARNT)
        elif none:
            warn(UNTRAINED)

    # -- labels -------------------------------------------------------------------------------------------------------

    def _labels(self, run: TrainingRun, labels: Labels) -> tuple[np.ndarray, np.ndarray, float, float, Measure]:
        """Weights, scores, the threshold, the level, and how scores are measured."""
        codes = labels.codes[self.rows]
        if self.share == 1:
            self._fit(run, self._plan(np.ones(len(self.rows)), self._given))
            verdict = self._as_fitted(labels, codes)
        else:
            known = None if self.share is None else 1 - self.share
            verdict = judge_halves(self._halves(run, codes), labels, self._given, known)
        measure = LabelMeasure(verdict, self.rows, labels)
        if self.share is not None:
            w, threshold = self._best(verdict.scores, self.share)
            if self.share < 1:
                self._fit(run, self._plan(w, self._given))
            return w, verdict.scores, threshold, float(self.level or 0.0), measure
        if verdict.misfit >= MATERIAL:
            warn(SIMPLE.format(share=verdict.misfit, which="All" if verdict.clean else "They"))
        elif verdict.warning:
            warn(verdict.warning)
        objective: Objective = self._given
        if not np.all(verdict.keep() > 0):
            P = np.zeros((self.epochs.examples.n, labels.K))
            P[self.rows] = verdict.classes
            objective = soft_labels(self.epochs, labels, P)
        self._fit(run, self._plan(np.ones(len(self.rows)), objective))
        return verdict.keep(), verdict.scores, verdict.cut(), verdict.noise.epsilon, measure

    def _as_fitted(self, labels: Labels, codes: np.ndarray) -> LabelVerdict:
        """All labels taken to be right, and scored by the module itself."""
        log_p = log_probabilities(self.epochs.evaluate(self.module, torch.as_tensor(self.rows)).classes)
        right = LabelNoise(np.eye(labels.K), np.ones(1), np.zeros(labels.K), 0.0, 1 / (len(codes) + labels.K))
        return LabelVerdict(right, [log_p], codes, np.ones(len(codes)))

    # -- other targets ------------------------------------------------------------------------------------------------

    def _numbers(self, run: TrainingRun) -> tuple[np.ndarray, np.ndarray, float, float, Measure]:
        """The same for targets of which nothing is known."""
        if self.share is None:
            verdict, scale, losses = judge_examples(self._halves(run, None), self._given)
            weights = verdict.inliers.astype(np.float64)
            self._fit(run, self._plan(weights, self._given))
            scores = scale.scores(losses)
            self._warn_of_misfit(scores, verdict)
            return weights, scores, verdict.cutoff, verdict.contamination, LossMeasure(scale)
        if self.share < 1:
            self._trimmed(run, self.share)
        else:
            self._fit(run, self._plan(np.ones(len(self.rows)), self._given))
        losses = self.epochs.evaluate(self.module, torch.as_tensor(self.rows)).losses
        scale = LossScale.of(losses)
        scores = scale.scores(losses)
        w, threshold = self._best(scores, self.share)
        return w, scores, threshold, float(self.level or 0.0), LossMeasure(scale)

    def _warn_of_misfit(self, scores: np.ndarray, verdict: Verdict) -> None:
        """UserWarning where examples that are flagged may be the module's fault."""
        X, y = self.epochs.examples.table(), self.epochs.examples.targets()
        single = isinstance(y, Tensor) and y.numel() == len(y)
        numbers = y.double().numpy().reshape(-1)[self.rows] if single else None
        if doubt := doubt_of_flagged(None if X is None else X[self.rows], numbers, scores, verdict):
            warn(doubt)

    def _trimmed(self, run: TrainingRun, share: float) -> None:
        """Judges find what is off, while h falls; the module learns the rest from the start, and w-steps go on."""
        halves = self._halves(run, None)
        falling = TrimmedEpochs(self.epochs, self._given, share, halves.count, self.groups)
        losses = halves.evaluate(halves.train("judge {} of 2", falling.plan)).losses
        trimming = TrimmedEpochs(self.epochs, self._given, share, self.count, self.groups)
        w = torch.as_tensor(trimming.weights(losses, self.rows))
        self._fit(run, trimming.settle(self.module, self.rows, w), {"w": w})

    # -- what both share ----------------------------------------------------------------------------------------------

    def _given(self, output: Any, batch: Batch) -> Tensor:
        """The user's own loss of the targets as they are."""
        return self.epochs.criterion.losses(output, batch.y, len(batch.rows))

    def _halves(self, run: TrainingRun, strata: np.ndarray | None) -> Halves:
        known = JUDGED_LABELS if self.epochs.labels is not None else JUDGED_NUMBERS
        part = JUDGED if self.level is None else known
        enough = min(self.count, ceil(JUDGE_STEPS / self.epochs.batches_in(len(self.rows) // FOLDS)))
        return Halves(run, self.recipe, self.rows, strata, max(round(part * self.count), enough), self.count)

    def _plan(self, weights: np.ndarray, objective: Objective) -> Callable[[int], EpochPlan]:
        """The same weights in all epochs."""
        plan = EpochPlan.of(self.epochs, self.rows, weights, objective)
        return lambda epoch: plan

    def _fit(self, run: TrainingRun, plan: Callable[[int], EpochPlan], arrays: dict[str, Tensor] | None = None) -> None:
        """The fit of the module itself."""
        learner = self.recipe.learner(self.count * self.epochs.batches_in(len(self.rows)), own=True)
        run.run("fit", learner, self.count, plan, arrays)

    def _best(self, scores: np.ndarray, share: float) -> tuple[np.ndarray, float]:
        """The weights that keep a share of the rows, every group's if there are groups; and the largest score kept."""
        groups = None if self.groups is None else self.groups[self.rows]
        w = np.asarray(weight_set(share * len(scores), groups).minimise(scores), dtype=np.float64)
        return w, float(np.max(scores[w > 0]))

    def _spread(self, part: np.ndarray, rest: float) -> np.ndarray:
        """An entry for every example; ``rest`` for those without a finite loss."""
        whole = np.full(self.epochs.examples.n, rest)
        whole[self.rows] = part
        return whole


def _epochs_of(epochs: Epochs, examples_of: Callable[[Any], NumberedExamples], dataset: Any) -> Epochs:
    """The same passes over other examples."""
    examples = examples_of(dataset)
    labels = epochs.labels
    if labels is not None:
        labels = Labels(labels.codes_of(examples.targets()), labels.values)
    return replace(epochs, examples=examples, labels=labels)


def _warn_of_invalid(invalid: int, n: int, trimmed: float) -> None:
    """Say that examples without a finite loss were left out, and whether there are more of them than were expected."""
    if invalid == n:
        raise ValueError(
            "no example has a finite loss: look for NaN in the inputs, the targets or the module's parameters."
        )
    if invalid > trimmed:
        warn(
            f"{invalid} of {n} examples have no finite loss and are left out; they count among the trimmed ones, "
            "and are more of them than contamination allows."
        )
    elif invalid:
        warn(f"{invalid} of {n} examples have no finite loss; they are trimmed first.")
