"""A process that makes attacks, one after the other, as it is told on its standard input."""

import json
import os
import resource
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from fuzz.judging import FailedAttackError
from fuzz.kinds import module_of

#: More than any attack may need, less than what would bring the machine down.
MOST_MEMORY = 6 << 30


def main(folder: Path) -> None:
    """Read numbers of attacks, and answer each with what happened."""
    # Whatever prints must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin:
        print(json.dumps(attack(*json.loads(line), folder)), file=answers)


def attack(kind: str, seed: int, number: int, folder: Path) -> dict[str, Any]:
    """Make one attack; say whether it failed, what happened, and how long it took."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            outcome, failed = module_of(kind).attack(seed, number, folder), False
    except FailedAttackError as error:
        outcome, failed = str(error), True
    except BaseException:
        outcome, failed = traceback.format_exc(limit=-8), True
    return {"failed": failed, "outcome": outcome, "seconds": time.perf_counter() - start}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
