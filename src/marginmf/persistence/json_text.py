"""JSON, written always in the same way and read strictly."""

import json
from typing import Any, NoReturn

from marginmf.persistence.errors import ModelFileError


def write_json(value: Any) -> str:
    """Return a value as JSON without spaces; infinities and NaN are a fault of the caller."""
    return json.dumps(
        value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
    )


def read_json(text: str, what: str) -> Any:
    """Parse JSON, or raise `ModelFileError` that says what could not be parsed.

    Stricter than the standard: a name that occurs twice in an object, and NaN, are refused.

    >>> read_json('{"a": [1, 2.5, null]}', "the header")
    {'a': [1, 2.5, None]}
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    except RecursionError:
        raise ModelFileError(f"{what} is nested too deeply") from None
    except ModelFileError as error:
        raise ModelFileError(f"{what} {error}") from None
    except ValueError:  # also a number with thousands of digits
        raise ModelFileError(f"{what} is not valid JSON") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = dict(pairs)
    if len(names) < len(pairs):
        raise ModelFileError("has the same name twice in one object")
    return names


def _refuse_constant(constant: str) -> NoReturn:
    raise ModelFileError(f"has the number {constant}, which JSON does not know")
