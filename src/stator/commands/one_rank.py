"""One process of `stator ranks`: `python -m stator.commands.one_rank REPORT SCRIPT ARGUMENTS`."""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import sys
import threading
import traceback
from typing import Any

from stator.commands.common import FAILED, FINE
from stator.commands.run import prepared, run_script
from stator.errors import RankDivergenceError

__all__: list[str] = []


def _main() -> int:
    path, *script = sys.argv[1:]
    options = argparse.Namespace(script=script)
    refused = prepared("ranks", options)
    if refused is not None:
        return refused
    gc.freeze()  # the collector looks no more for garbage in all that is imported, neither now nor when Python ends
    from stator.pytorch.ranks import session  # torch has been imported by now, if there is one

    atexit.register(session.leave)  # before the script registers what it has to do, and so after that is done
    over = threading.Event()
    beginning = threading.Thread(target=_begin, args=(session, over), daemon=True)
    beginning.start()
    report: dict[str, Any] = {"difference": None, "error": None}
    code = FINE
    try:
        run_script(options)
        session.finish()
    except RankDivergenceError as error:
        report["difference"] = {"text": str(error), "where": error.where, "values": error.values}
        code = FAILED
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        traceback.print_exc()
        known = session.known()
        report["error"] = f"{type(error).__name__}: {error}".partition("\n")[0]
        report["difference"] = known and {"text": str(known), "where": known.where, "values": known.values}
        code = FAILED
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    over.set()
    beginning.join(5)  # no thread may be in a store when Python ends
    try:
        session.finish()  # the others may need this rank to be told
    except RankDivergenceError:
        pass
    return code


def _begin(session: Any, over: threading.Event) -> None:
    """Begin to compare when there is a process group, also where nothing is compiled."""
    while not over.is_set() and not session.begin():
        over.wait(0.05)


if __name__ == "__main__":
    sys.exit(_main())
