"""Facts of the process and of the thread that torch answers from: guarded, for the program changes them."""

import pytest
import torch
import torch.distributed as dist

import stator


def in_group(x):
    return x + 1 if dist.is_initialized() else x - 1


def cuda_begun(x):
    return x + 1 if torch.cuda.is_initialized() else x - 1


def which_device(x):
    return x + torch.cuda.current_device()


def capturing(x):
    return x + 1 if torch.cuda.is_current_stream_capturing() else x - 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_whether_there_is_a_process_group(backend):
    compiled = stator.compile(in_group, backend=backend, fullgraph=True)
    x = torch.zeros(2)
    assert compiled(x)[0] == -1
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert compiled(x)[0] == 1
    finally:
        dist.destroy_process_group()
    assert compiled(x)[0] == -1
    assert stator.stats().graphs == 2
    assert "is_initialized()" in stator.stats().recompile_log[0].reason


@pytest.mark.parametrize(
    ("function", "name", "answers"),
    [
        (cuda_begun, "torch.cuda.is_initialized", (False, True)),
        (which_device, "torch.cuda.current_device", (0, 1)),
        (capturing, "torch.cuda.is_current_stream_capturing", (False, True)),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_what_cuda_is_at(function, name, answers, monkeypatch):
    """The functions that answer here stand for torch's; they are known by their names, as torch's are."""
    owner, _, short = name.rpartition(".")
    module = torch.cuda if owner == "torch.cuda" else None
    asked = getattr(module, short)
    answer = [answers[0]]

    def stand_in():
        return answer[0]

    stand_in.__module__, stand_in.__qualname__, stand_in.__name__ = asked.__module__, asked.__qualname__, short
    monkeypatch.setattr(module, short, stand_in)
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    x = torch.zeros(2)
    torch.testing.assert_close(compiled(x), function(x))
    answer[0] = answers[1]
    torch.testing.assert_close(compiled(x), function(x))
    assert stator.stats().graphs == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_profiler_that_is_made_inside_breaks_where_it_begins_and_ends(backend):
    """It sees the operations that are in it: so it must begin and end between two graphs."""

    def program(x):
        with torch.profiler.profile() as profile:
            y = x * 2
        return y.exp(), profile

    compiled = stator.compile(program, backend=backend, dynamic=True)
    for size in (3, 5, 7):
        x = torch.ones(size, requires_grad=True)
        result, profile = compiled(x)
        assert torch.equal(result, (x * 2).exp())
        assert profile.activities == torch.profiler.supported_activities()
        assert not any("exp" in event.key for event in profile.key_averages())
    assert "aten::mul" in {event.key for event in profile.key_averages()}
    assert {record.code for record in stator.stats().breaks} == {"SB0115"} and stator.stats().graph_breaks == 2
