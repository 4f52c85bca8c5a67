"""Methods whose scores are a linear function of the features."""

from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray
from marginmf.labels.base import LabelsEstimator


def affine(X: Any, weights: Float64Array, intercept: Float64Array) -> Float64Array:
    """Return ``X @ weights + intercept``, dense whether X is sparse or not.

    >>> import numpy as np
    >>> affine(np.array([[1.0, 0.0]]), np.array([[2.0], [3.0]]), np.array([0.5]))
    array([[2.5]])
    """
    product: Float64Array = X @ weights
    product += intercept
    return product


class LinearScores(LabelsEstimator):
    """A label estimator whose scores are ``X @ coef_.T + intercept_``."""

    _saved: ClassVar[dict[str, Any]] = {
        "coef_": floats("labels", "features"),
        "intercept_": floats("labels"),
    }
    coef_: Float64Array
    intercept_: Float64Array

    def _scores(self, X: Any) -> FloatArray:
        return affine(X, self.coef_.T, self.intercept_)


class LabelSpaceTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LabelsEstimator):
    """A label estimator that maps centred features to factors, and factors to labels.

    Subclasses learn ``feature_map_`` (n_features, n_components), ``label_factors_``
    (n_components, n_labels), ``feature_means_`` and ``label_means_``, for labels of 0 and 1.
    """

    #: Centred labels that do not vary cost nothing, and their means are their scores.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "label_factors_": floats("factors", "labels"),
        "feature_map_": floats("features", "factors"),
        "feature_means_": floats("features"),
        "label_means_": floats("labels"),
    }
    feature_map_: Float64Array
    label_factors_: Float64Array
    feature_means_: Float64Array
    label_means_: Float64Array

    def transform(self, X: Any) -> Float64Array:
        """Embed rows: map their features into the space of the labels' factors.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self._embedded(self._features(X))

    def _embedded(self, X: Any) -> Float64Array:
        return affine(X, self.feature_map_, -(self.feature_means_ @ self.feature_map_))

    def _scores(self, X: Any) -> FloatArray:
        # Labels are 0 or 1 inside: rather there is above one half.
        return affine(self._embedded(X), self.label_factors_, self.label_means_ - 0.5)

    @property
    def _n_features_out(self) -> int:
        return int(self.feature_map_.shape[1])
