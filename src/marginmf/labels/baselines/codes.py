"""Labels coded by few numbers that features predict: a choice of labels (CSSP), or FaIE.

Labels are -1 and +1 in both and, unlike those of PLST, not centred: ``C = 2 Y - 1``.  A row's codes
are predicted by ridge regression with an intercept, and decoded by a matrix; a label is there where
the result is above 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.parameters import check_choice, check_number, check_size, resolve_size
from marginmf._utils.random import as_generator
from marginmf._utils.saved import indices
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import LabelGram, leading_eigenvectors, orient
from marginmf.labels.algebra.products import LARGEST, Products, Spectrum
from marginmf.labels.algebra.ridge import Ridge
from marginmf.labels.base import method
from marginmf.labels.baselines.rowfree import RowFreeTransformer, feature_means, label_gram
from marginmf.labels.linear import affine

#: What the labels 0 and 1 are multiplied by, and what is added then.
CODINGS = {"plus-minus": (2.0, -1.0), "zero-one": (1.0, 0.0)}
#: Eigenvalues below this share of the largest are zero, but for rounding.
ZERO = 1e-10


@dataclass(frozen=True, eq=False)
class CodedGram:
    """``C^T C`` of coded labels ``C = scale Y + shift``, which are not centred."""

    gram: LabelGram
    scale: float
    shift: float

    @property
    def means(self) -> Float64Array:
        """The mean of every coded label."""
        return self.scale * self.gram.means + self.shift

    @property
    def counts(self) -> Float64Array:
        """How many rows have each label."""
        return self.gram.counts

    @property
    def trace(self) -> float:
        """The sum of the squares of the coded labels."""
        centred = self.scale**2 * self.gram.trace
        return float(centred + self.gram.n_rows * np.sum(np.square(self.means)))

    @cached_property
    def matrix(self) -> Float64Array:
        """The whole matrix."""
        product: Float64Array = self.scale**2 * self.gram.matrix
        product += self.gram.n_rows * np.outer(self.means, self.means)
        return product

    def apply(self, M: Float64Array) -> Float64Array:
        """Return the product with another matrix."""
        product: Float64Array = self.scale**2 * self.gram.apply(M)
        product += self.gram.n_rows * np.multiply.outer(self.means, self.means @ M)
        return product

    def rows(self, labels: IntArray) -> Float64Array:
        """Return some rows of the matrix."""
        product = self.gram.together[labels].toarray()
        product -= np.outer(self.gram.counts[labels], self.gram.means)
        product *= self.scale**2
        product += self.gram.n_rows * np.outer(self.means[labels], self.means)
        return product


class CodedLabels(RowFreeTransformer):
    """A label estimator that predicts codes of a row's labels and decodes them.

    Attributes
    ----------
    feature_map_ : array of shape (n_features, n_components)
        The map from centred features to the codes, less their means.
    label_factors_ : array of shape (n_components, n_labels)
        What decodes them to labels of -1 and +1.
    feature_means_ : array of shape (n_features,)
        What features were centred with.
    label_means_ : array of shape (n_labels,)
        The decoded means of the codes, from -1 to +1 for labels that are coded well.
    """

    def _scores(self, X: Any) -> FloatArray:
        return affine(self._embedded(X), self.label_factors_, self.label_means_)


@method("cssp")
@dataclass(eq=False, repr=False)
class CSSP(CodedLabels):
    """Column subset selection: ridge regression of a few labels that nearly span all (Bi and Kwok).

    Labels are drawn at random, without replacement, with probabilities that grow with their part in
    the leading singular vectors of the label matrix (Bi and Kwok, 2013).  Ridge regression predicts
    those drawn, and the linear combinations of them that are nearest to the other labels predict
    these.  The paper has ``decision="sign"``.

    Parameters
    ----------
    n_labels_kept : int or float
        How many labels are drawn, or which share of the labels that vary; no more than the rank of
        the label matrix.  Of many thousands of labels a share takes long: give a whole number.
    reg : float
        The regularisation strength of the ridge regression.
    coding : {"plus-minus", "zero-one"}
        What absent and present labels are: -1 and +1, or 0 and 1.
    random_state : int, Generator or None
        Seeds the draw.

    Attributes
    ----------
    kept_labels_ : array of shape (n_components,)
        The labels that were drawn.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = CSSP(n_labels_kept=0.5, decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.kept_labels_.shape
    ((100, 6), (3,))
    """

    n_labels_kept: int | float = 0.4
    reg: float = 1.0
    coding: str = "plus-minus"
    random_state: Any = None

    _saved: ClassVar[dict[str, Any]] = {"kept_labels_": indices("factors", along="labels")}

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if len(np.unique(self.kept_labels_)) < len(self.kept_labels_):
            yield ".kept_labels_ names a label twice"

    def _check(self) -> None:
        check_size(self, "n_labels_kept")
        check_number(self, "reg", float, 0)
        check_choice(self, "coding", CODINGS)
        as_generator(self.random_state)

    def _fit_nothing(self, X: Any) -> None:
        super()._fit_nothing(X)
        self.kept_labels_: IntArray = np.zeros(0, np.int64)

    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        gram = CodedGram(label_gram(Y, products), *CODINGS[self.coding])
        kept = self._draw(gram)
        # The least-squares combinations of the labels kept, the smallest ones if many are best.
        with_all = gram.rows(kept)
        decoder = np.linalg.pinv(with_all[:, kept], ZERO, hermitian=True) @ with_all
        ridge = Ridge(X, float(self.reg), products=products and products.take(kept))
        self.kept_labels_ = kept
        self.feature_map_ = gram.scale * ridge.solve(Y[:, kept])
        self.feature_means_ = ridge.means
        # To -1 and +1, if they are coded as 0 and 1.
        scale, shift = (1.0, 0.0) if self.coding == "plus-minus" else CODINGS["plus-minus"]
        self.label_factors_ = scale * decoder
        self.label_means_ = scale * (gram.means[kept] @ decoder) + shift

    def _draw(self, gram: CodedGram) -> IntArray:
        """Draw labels by their leverage: their squared length in the leading eigenvectors."""
        n_labels = len(gram.counts)
        leading = leading_eigenvectors(gram, resolve_size(self.n_labels_kept, n_labels))
        leverage = np.square(leading).sum(axis=1)
        leverage[leverage < ZERO] = 0.0  # rounding
        n_kept = min(leading.shape[1], int(np.count_nonzero(leverage)))
        generator = self._checkpoint.generator("labels kept", self.random_state)
        chances = leverage / leverage.sum()
        return np.sort(generator.choice(n_labels, n_kept, replace=False, p=chances))


@dataclass(frozen=True, eq=False)
class JointGram:
    """``B^T B`` of ``B = [C, sqrt(alpha) F, sqrt(alpha / N) 1]``; ``B B^T`` is ``C C^T + alpha H``.

    ``H = F F^T + 1 1^T / N`` makes predictions of targets by ridge regression with an intercept:
    ``F = X P (S + reg I)^{-1/2}`` with centred X and ``X^T X = P S P^T``.
    """

    labels: CodedGram
    spectrum: Spectrum
    alpha: float
    reg: float

    @cached_property
    def shrinkage(self) -> Float64Array:
        """The roots of ``S / (S + reg)``."""
        values = self.spectrum.values
        return np.sqrt(values / (values + self.reg))

    @cached_property
    def beside(self) -> Float64Array:
        """The block of ``B^T B`` beside ``C^T C``: the products of C with the other columns."""
        roots = np.sqrt(self.spectrum.values + self.reg)[:, None]
        predictable = self.labels.scale * (self.spectrum.cross / roots).T
        constant = np.sqrt(self.labels.gram.n_rows) * self.labels.means[:, None]
        return np.sqrt(self.alpha) * np.hstack([predictable, constant])

    @cached_property
    def below(self) -> Float64Array:
        """The rest of the diagonal; what else is beside it is zero."""
        return self.alpha * np.append(np.square(self.shrinkage), 1.0)

    @property
    def counts(self) -> Float64Array:
        """A number for each column of B."""
        return np.append(self.labels.counts, self.below)

    @property
    def trace(self) -> float:
        """The sum of the eigenvalues."""
        return self.labels.trace + float(self.below.sum())

    @cached_property
    def matrix(self) -> Float64Array:
        """The whole matrix."""
        beside = self.beside
        return np.block([[self.labels.matrix, beside], [beside.T, np.diag(self.below)]])

    def apply(self, M: Float64Array) -> Float64Array:
        """Return the product with another matrix."""
        above, under = np.split(M, [len(self.labels.counts)])
        return np.vstack(
            [
                self.labels.apply(above) + self.beside @ under,
                self.beside.T @ above + self.below[:, None] * under,
            ]
        )


@method("faie")
@dataclass(eq=False, repr=False)
class FaIE(CodedLabels):
    """Feature-aware implicit encoding: codes that recover labels and that features predict.

    The codes Z of the training rows, orthonormal columns, maximise the trace of
    ``Z^T (C C^T + alpha H) Z``, where H makes predictions by ridge regression (Lin and others,
    2014); a row's codes are predicted by the same ridge regression, and ``Z^T C`` decodes them.
    The paper has ``decision="sign"``.

    Parameters
    ----------
    n_factors : int or float
        How many codes each row has, or how many as a share of the labels that vary.  Of many
        thousands of labels a share takes long: give a whole number.
    alpha : float
        How much it counts that features predict the codes.  With 0 the codes are those of `PLST`,
        but that labels are not centred.
    reg : float
        The regularisation strength of the ridge regression.

    Notes
    -----
    The eigenvectors of a matrix with a row for each label and each feature are computed (or for
    each training row, if these are fewer than the features): no more than 8,192 of these.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = FaIE(n_factors=0.5, alpha=100.0, decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((100, 6), (100, 3))
    """

    n_factors: int | float = 0.4
    alpha: float = 1.0
    reg: float = 1.0

    def _check(self) -> None:
        check_size(self, "n_factors")
        check_number(self, "alpha", float, 0)
        check_number(self, "reg", float, 0)

    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        n_rows, width = X.shape
        if min(n_rows, width) > LARGEST:
            raise ValueError(
                f"FaIE cannot learn from {n_rows} rows with {width} features: it takes the "
                f"eigenvectors of a matrix of one of these sizes, {LARGEST} at most. Reduce the "
                "features first, for example by TruncatedSVD."
            )
        gram = CodedGram(label_gram(Y, products), *CODINGS["plus-minus"])
        spectrum = Spectrum.of(X, Y, True, products)
        alpha, reg = float(self.alpha), float(self.reg)
        joint = JointGram(gram, spectrum, alpha, reg)
        # Z = B v w^{-1/2} for eigenvectors v and eigenvalues w of B^T B.
        vectors = leading_eigenvectors(joint, min(resolve_size(self.n_factors, Y.shape[1]), n_rows))
        roots = np.sqrt(np.sum(vectors * joint.apply(vectors), axis=0))
        of_labels, of_features, of_constant = np.split(vectors, [Y.shape[1], len(vectors) - 1])
        signs = orient(of_labels)
        # Z^T C = w^{-1/2} v^T B^T C, and v^T B^T B = w v^T.
        self.label_factors_ = (signs * roots)[:, None] * of_labels.T
        # X^T Z and the sums of Z, from those of the columns of B.
        cross = gram.scale * (spectrum.cross @ of_labels)
        cross += np.sqrt(alpha * spectrum.values)[:, None] * joint.shrinkage[:, None] * of_features
        sums = n_rows * (gram.means @ of_labels) + np.sqrt(alpha * n_rows) * of_constant[0]
        scale = signs / roots
        self.feature_map_ = spectrum.lift(cross * scale / (spectrum.values + reg)[:, None])
        self.feature_means_ = feature_means(X, products)
        self.label_means_ = (scale * sums / n_rows) @ self.label_factors_
