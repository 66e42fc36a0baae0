from stator.objects import bytes_, float_, int_, payload, str_
