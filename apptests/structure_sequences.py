"""time.struct_time, os.stat_result: items and fields of any kind, copies."""

import copy
import os
import sys
import time

from apptests.raising import message


def test_items_are_kept():
    items = [[i] for i in range(time.struct_time.n_fields)]
    moment = time.struct_time(items)
    assert len(moment) == 9 and moment[0] is items[0] is moment.tm_year
    assert moment.tm_zone is items[9] and moment.tm_gmtoff is items[10]
    moment[1].append(3)
    return moment, items, moment.tm_zone, repr(moment)


def test_copies():
    moment = time.struct_time([[i] for i in range(time.struct_time.n_fields)])
    copied, deep = copy.copy(moment), copy.deepcopy(moment)
    for other in (copied, deep):
        assert type(other) is time.struct_time and other == moment and other.tm_zone == moment.tm_zone
    assert copied[0] is moment[0] and copied.tm_gmtoff is moment.tm_gmtoff
    assert deep[0] is not moment[0] and deep.tm_year is deep[0] and deep.tm_zone is not moment.tm_zone
    return copied, deep, deep.tm_zone


def test_fields_without_names():
    items = [[i] for i in range(os.stat_result.n_sequence_fields)]
    found = os.stat_result(items, {"st_atime": [1.0], "st_atime_ns": [2.0]})
    copied = copy.copy(found)
    assert copied.st_mode is found[0] and copied.st_atime is found.st_atime
    assert found.st_atime == [1.0] and found[7] == [7] and found.st_mtime_ns is None
    return found, found.st_atime, found.st_atime_ns, copied.__reduce__()


def test_existing():
    found = os.stat("/")
    copied = copy.copy(found)
    assert copied == found and copied.st_mtime_ns == found.st_mtime_ns and copied is not found
    return found.__reduce__()[1][0][0]


def test_objects_as_items():
    class Thing:
        pass

    thing = Thing()
    moment = time.struct_time((thing,) * 9)
    return moment[3] is thing, copy.copy(moment).tm_year is thing, moment.tm_zone


def test_wrong_arguments():
    return [
        message(time.struct_time, [[1]]),
        message(time.struct_time, [[1]] * 12),
        message(time.struct_time, 3),
        message(time.struct_time, [[1]] * 9, 3),
        message(time.struct_time),
        message(time.struct_time, [[1]] * 9, {"other": []}),
        message(time.struct_time, [[1]] * 9, {"other": [], "tm_zone": 2, "tm_year": 3}),
    ]


def test_replaced():
    moment = time.struct_time([[i] for i in range(11)])
    if sys.version_info < (3, 13):
        return None
    year = [2]
    other = copy.replace(moment, tm_year=year)
    assert other[0] is year and other[1] is moment[1] and other.tm_zone is moment.tm_zone
    return other, message(copy.replace, moment, nothing=2)
