"""The one error of files that hold no model."""


class ModelFileError(ValueError):
    """A file that is not a model, or is damaged, cut short, or made with ill intent."""
