"""What methods that go through a small space of factors have in common."""

from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from marginmf._typing import Float64Array, FloatArray
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.base import LabelsEstimator


class LabelSpaceTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, LabelsEstimator):
    """A label estimator that maps centred features to factors, and factors to labels.

    Subclasses learn ``feature_map_`` (n_features, n_components), ``label_factors_``
    (n_components, n_labels), ``feature_means_`` and ``label_means_``, for labels of 0 and 1.
    """

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
        embedded: Float64Array = X @ self.feature_map_ - self.feature_means_ @ self.feature_map_
        return embedded

    def _scores(self, X: Any) -> FloatArray:
        # One thread, because products that BLAS shares out come otherwise rounded.
        with one_blas_thread():
            scores: FloatArray = self._embedded(X) @ self.label_factors_
        # Labels are 0 or 1 inside: rather there is above one half.
        scores += self.label_means_ - 0.5
        return scores

    @property
    def _n_features_out(self) -> int:
        return int(self.feature_map_.shape[1])
