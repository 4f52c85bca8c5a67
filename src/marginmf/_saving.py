"""Models that can be written to files; apart from `marginmf.persistence`, which knows them all."""

from os import PathLike
from typing import Any


class Savable:
    """An estimator with the method `save`."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write this fitted model to a file that `marginmf.load` reads.

        The file appears whole or not at all.  It holds everything that the model has learned,
        ratings and rows included where predictions need them, and predictions of the loaded model
        are the same to the last bit.  Not kept are ``callbacks``, which are about the fit and are
        code; and a ``random_state`` that is a generator of another kind than
        ``numpy.random.default_rng`` makes, which becomes None.

        Parameters
        ----------
        path : str or path
            The file; what was there before is replaced.

        Raises
        ------
        ValueError
            If the model is not fitted, or holds what a file cannot: a loss or a solver of your
            own, ids of an uncommon type, or a classifier inside that is not linear.  Nothing is
            written then.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> import marginmf
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = marginmf.ratings.BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/stars.marginmf")
        ...     marginmf.load(f"{folder}/stars.marginmf")
        BiasOnly(reg=0.1)
        """
        from marginmf.persistence import save

        save(self._to_save(), path)

    def _to_save(self) -> Any:
        """Return what stands in the file: this model, or one that is the same there."""
        return self
