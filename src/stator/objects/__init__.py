from stator.objects import attr_dict, bytes_, dict_, float_, int_, payload, str_
from stator.objects import cell, function, generator, method  # noqa: F401
