"""Variables named like those of the generated programs."""


def use(run, graph, error, result, END, t0, obj, args):  # noqa: N803
    items = [run, graph, error, result, END, t0, obj, args]
    try:
        total = sum(items)
        for name in ("run", "result"):
            total += len(name)
            if result != 4:
                raise AssertionError(result)
        int(total)
    except ValueError as error:  # noqa: F841
        raise
    return total, run, graph, result, END, t0, obj, args


def test_names_of_generated_programs():
    assert use(1, 2, 3, 4, 5, 6, 7, 8) == (45, 1, 2, 4, 5, 6, 7, 8)
    run, graph, error, result = [1], [2], [3], [4]
    END, t0 = [5], [6]  # noqa: N806
    for step in range(3):
        result = [*result, step]
        error.append(len(result))
    assert (run, graph, END, t0) == ([1], [2], [5], [6])
    assert result == [4, 0, 1, 2]
    assert error == [3, 2, 3, 4]
