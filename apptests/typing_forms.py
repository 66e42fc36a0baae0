"""Forms of `typing` and generic aliases, compared, subscripted and put into unions."""

import types
import typing

ALIAS = typing.List[int]
UNION = typing.Union[int, str]


def test_unions():
    assert int | str == UNION == typing.Union[str, int]
    assert (ALIAS | bytes) == typing.Union[bytes, typing.List[int]]
    assert typing.Optional[ALIAS] == typing.Union[ALIAS, None]
    assert hash(int | str) == hash(str | int)
    assert typing.Union[ALIAS, ALIAS] is ALIAS


def test_parts():
    assert typing.get_origin(ALIAS) is list and typing.get_args(ALIAS) == (int,)
    assert typing.get_args(UNION) == (int, str)
    assert isinstance(int | str, types.UnionType)
    assert repr(ALIAS) == "typing.List[int]"
    assert {ALIAS: 1}[typing.List[int]] == 1
    return ALIAS, typing.Dict[str, ALIAS]


class Left:
    def __ror__(self, other):
        return "ror", other


class Other:
    pass


def test_unions_with_what_is_no_type():
    assert (int | Left()) == ("ror", int)
    try:
        int | Other()
    except TypeError as e:
        assert str(e) == "unsupported operand type(s) for |: 'type' and 'Other'"
    else:
        raise AssertionError
