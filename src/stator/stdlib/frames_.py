"""What `sys` tells about the traced frames."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from stator.objects.exception import exc_info
from stator.objects.protocol import NONE, builtin

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value


@builtin(sys.exc_info)
def sys_exc_info(space: Space) -> Value:
    handled = space.trace.current_frame.handled
    return space.new_tuple([NONE, NONE, NONE] if handled is None else exc_info(space, handled))


@builtin(sys.exception)
def sys_exception(space: Space) -> Value:
    handled = space.trace.current_frame.handled
    return NONE if handled is None else handled
