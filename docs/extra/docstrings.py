"""What the API reference has to know of our docstrings, as an extension of Griffe.

Griffe reads source code without running it, so that it does not see the paragraphs that the
docstrings of all factorisers share: those are filled in when the class is made.  To parameters that
are described together it gives the first one's default.  Choices in braces lose their quotes.  And
an example that stands under no heading would be taken for prose.
"""

import re
from importlib import import_module
from inspect import cleandoc
from operator import attrgetter
from typing import Any

from griffe import Class, Extension, Object

# Parameters that share a description: their names, perhaps their type, and the indented lines.
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)( : .+)?\n((?:    .*(?:\n|\Z))+)", re.MULTILINE)
CHOICES = re.compile(r" : \{(.+)\}$", re.MULTILINE)
# The section of the parameters, up to the next section.
PARAMETERS = re.compile(r"^Parameters\n-+\n.*?(?=^\w+\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
# An example, up to the next empty line.
EXAMPLE = re.compile(r"^>>> .+?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Docstrings(Extension):
    """Fill in shared paragraphs, describe every parameter by itself, and mark examples as code."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Change the docstring of one module, class, function or attribute."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if isinstance(obj, Class):
            inside = obj.path.removeprefix(f"{obj.module.path}.")
            text = cleandoc(attrgetter(inside)(import_module(obj.module.path)).__doc__)
        text = PARAMETERS.sub(lambda found: _one_by_one(found[0]), text)
        if "\nExamples\n---" not in text:
            text = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", text)
        obj.docstring.value = text


def _one_by_one(section: str) -> str:
    """Return the section with one entry for each parameter, and with choices in words."""

    def separate(found: re.Match[str]) -> str:
        names, kind, lines = found.groups()
        lines = lines if lines.endswith("\n") else f"{lines}\n"
        return "".join(f"{name}{kind or ''}\n{lines}" for name in names.split(", "))

    return CHOICES.sub(r" : one of \1", TOGETHER.sub(separate, section))
