"""stator.config: layers, checks, and what a patch reaches."""

import dataclasses
import threading

import pytest

from stator import config
from stator.errors import ConfigError


def test_every_option_is_documented_and_has_a_default():
    for name, row in config.describe().items():
        assert row["doc"].endswith("."), name
        assert type(row["default"]) in (bool, int, str)
    assert set(config.names()) == {field.name for field in dataclasses.fields(config.Config)}


def test_patch_holds_in_the_block_and_nests():
    before = config.current()
    with config.patch(recompile_limit=3):
        with config.patch({"verbose": True}, recompile_limit=2):
            assert (config.current().recompile_limit, config.current().verbose) == (2, True)
            assert config.recompile_limit == 2
        assert (config.current().recompile_limit, config.current().verbose) == (3, before.verbose)
    assert config.current() == before


def test_patch_ends_with_an_exception():
    before = config.current()
    with pytest.raises(ZeroDivisionError), config.patch(verbose=True):
        raise ZeroDivisionError
    assert config.current() == before


def test_patch_decorates():
    @config.patch(recompile_limit=5)
    def limit():
        return config.current().recompile_limit

    assert (limit(), limit()) == (5, 5)


def test_patch_does_not_reach_other_threads():
    seen = []
    with config.patch(recompile_limit=3):
        thread = threading.Thread(target=lambda: seen.append(config.current().recompile_limit))
        thread.start()
        thread.join()
    assert seen == [config.Config().recompile_limit]


def test_assignment_holds_for_the_process():
    seen = []
    before = config.recompile_limit
    config.recompile_limit = before + 1
    try:
        thread = threading.Thread(target=lambda: seen.append(config.current().recompile_limit))
        thread.start()
        thread.join()
        assert seen == [before + 1]
        assert "recompile_limit" not in vars(config)
    finally:
        config.recompile_limit = before


def test_overrides_win_over_patches():
    with config.patch(recompile_limit=3):
        assert config.current({"recompile_limit": 4}).recompile_limit == 4
        assert config.current().recompile_limit == 3


def test_settings_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.current().verbose = True
    assert config.Config().replace(verbose=True).verbose is True


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"recompile_limits": 3}, ["recompile_limits", "did you mean 'recompile_limit'"]),
        ({"zzz": 3}, ["zzz", "known: recompile_limit"]),
        ({"recompile_limit": "3"}, ["recompile_limit", "must be int", "not str"]),
        ({"recompile_limit": True}, ["must be int", "not bool"]),
        ({"recompile_limit": 0}, ["at least 1"]),
        ({"verbose": 1}, ["must be bool"]),
    ],
)
def test_mistakes_are_named(options, words):
    with pytest.raises(ConfigError) as caught:
        config.checked(options, where="options")
    assert all(word in str(caught.value) for word in ["options: ", *words])
    with pytest.raises(ConfigError):
        config.patch(**options).__enter__()


def test_assignment_to_an_unknown_option_is_a_mistake():
    with pytest.raises(ConfigError, match="did you mean 'verbose'"):
        config.verbos = True
    with pytest.raises(AttributeError):
        config.verbos


@pytest.mark.parametrize(("text", "value"), [("1", True), ("true", True), ("off", False), ("", False), ("No", False)])
def test_environment_booleans(text, value):
    assert config.from_environment({"STATOR_VERBOSE": text}).verbose is value


def test_environment_numbers_and_texts():
    found = config.from_environment({"STATOR_RECOMPILE_LIMIT": "12", "STATOR_STATIC_SOURCES": "L['x']", "OTHER": "x"})
    assert (found.recompile_limit, found.static_sources) == (12, "L['x']")


@pytest.mark.parametrize(
    "environ", [{"STATOR_VERBOSE": "maybe"}, {"STATOR_RECOMPILE_LIMIT": "many"}, {"STATOR_RECOMPILE_LIMIT": "0"}]
)
def test_environment_mistakes_name_the_variable(environ):
    with pytest.raises(ConfigError, match=next(iter(environ))):
        config.from_environment(environ)
