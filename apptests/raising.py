"""What a call raises, for programs to compare."""


def message(function, *args, **kwargs):
    """The type and words of the exception that a call raises, None if it raises none."""
    try:
        function(*args, **kwargs)
    except Exception as e:
        return type(e).__name__, str(e)
    return None
