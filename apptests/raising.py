"""What a call raises, for programs to compare."""


def message(function, *args, **kwargs):
    """The type and words of the exception that a call raises, None if it raises none."""
    try:
        function(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e)
    return None


def words(kind, function):
    """The words of the exception of this type that a call raises."""
    try:
        function()
    except kind as e:
        return str(e)
    raise AssertionError(f"{kind.__name__} not raised")
