"""Label estimators whose scores are linear in the features, directly or through a few factors."""

from typing import Any, ClassVar

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray
from marginmf.labels.base import LabelsEstimator


def affine(X: Any, weights: Float64Array, intercept: Float64Array) -> Float64Array:
    """Return ``X @ weights + intercept``, dense whether X is sparse or not."""
    product: Float64Array = X @ weights
    product += intercept
    return product


class LinearScores(LabelsEstimator):
    """A label estimator whose scores are ``X @ coef_.T + intercept_``.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        The weights of the features.
    intercept_ : array of shape (n_labels,)
        What is added.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "coef_": floats("labels", "features"),
        "intercept_": floats("labels"),
    }
    coef_: Float64Array
    intercept_: Float64Array

    def _scores(self, X: Any) -> FloatArray:
        return affine(X, self.coef_.T, self.intercept_)


class LabelSpaceTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LabelsEstimator):
    """A label estimator that maps centred features to factors, and factors to labels of 0 and 1.

    Attributes
    ----------
    feature_map_ : array of shape (n_features, n_components)
        The map from centred features to the factors.
    label_factors_ : array of shape (n_components, n_labels)
        The factors of every label.
    feature_means_, label_means_ : array
        What features and labels were centred with.
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

        From an X of shape (n_samples, n_features) to an array of shape (n_samples, n_components).
        """
        return self._embedded(self._features(X))

    def _embedded(self, X: Any) -> Float64Array:
        return affine(X, self.feature_map_, -(self.feature_means_ @ self.feature_map_))

    def _scores(self, X: Any) -> FloatArray:
        # Labels are 0 or 1 inside: a score above one half means that a label is there.
        return affine(self._embedded(X), self.label_factors_, self.label_means_ - 0.5)

    @property
    def _n_features_out(self) -> int:
        return int(self.feature_map_.shape[1])
