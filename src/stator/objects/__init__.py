from stator.objects import attr_dict, bytes_, dict_, float_, int_, payload, str_
