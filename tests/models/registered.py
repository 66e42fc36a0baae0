"""What importing each file of rare models changes in the tables, in a process that has imported no other of them."""

import importlib
import json
import multiprocessing
import sys

import stator.models  # noqa: F401  all models that are not rare
from stator.guards.raw import owner_of
from stator.space import protocol, rare

#: by host type, and by the id of a host callable
BY_TYPE = ("MODELS", "REALISERS", "AMBIENT", "IMMUTABLE")
BY_ID = ("HANDLERS", "PURE", "IMPURE", "EXTERNAL_ONLY", "RESTRICTED")
#: what grows with the tables: what is kept alive; and types that are asked for only when a value of the type is there
GROWING = {"_KEEP", "UNLIKE", "PAYLOADS", "_LOADED"}


def containers():
    """The tables of Stator's modules: where → the table, and what is in it."""
    found = {}
    for module in [m for name, m in sys.modules.items() if name.startswith("stator.")]:
        for name, table in vars(module).items():
            if isinstance(table, (dict, list, set)) and not name.startswith("__") and name not in GROWING:
                found[id(table)] = f"{module.__name__}.{name}", table, list(table)
    return found


def shown(host):
    owner = owner_of(host)
    home = owner or host if isinstance(owner or host, type) else None
    module = host.__module__ if home is None else home.__module__
    return f"{module}.{host.__qualname__}"


def hidden(tables):
    """The entries that are not asked for, since another table has an answer that comes before."""
    known = {name: tables[name].keys() if isinstance(tables[name], dict) else tables[name] for name in tables}
    return {
        "MODELS": known["REALISERS"],
        "REALISERS": known["MODELS"] | known["IMMUTABLE"],
        "IMMUTABLE": known["MODELS"],
        "AMBIENT": known["IMMUTABLE"],
        "RESTRICTED": known["HANDLERS"] | known["PURE"],
    }


def changes(file):
    tables = {name: getattr(protocol, name) for name in BY_TYPE + BY_ID}
    before = {name: dict(table) if isinstance(table, dict) else set(table) for name, table in tables.items()}
    known = {id(table) for table in tables.values()}
    others = [found for key, found in containers().items() if key not in known]

    importlib.import_module(file)

    hosts = {id(host): host for host in protocol._KEEP}
    new, replaced = [], []
    answered, unasked = hidden(before), []
    for name, table in tables.items():
        for key in set(table) - set(before[name]):
            host = hosts[key] if name in BY_ID else key
            new.append((f"{name}: {shown(host)}", rare.files_about(host)))
            if key in answered.get(name, ()) or (name == "RESTRICTED" and owner_of(host) in before["IMMUTABLE"]):
                unasked.append(f"{name}: {shown(host)}")
        if isinstance(table, dict):
            replaced += [f"{name}: {key}" for key, value in before[name].items() if table[key] is not value]
    elsewhere = [where for where, table, items in others if list(table) != items]
    needed = [n for n in sys.modules if n.startswith("stator.models.rare.") and n.count(".") == 4 and n != file]
    return {"new": new, "replaced": replaced, "hidden": unasked, "elsewhere": elsewhere, "needed": needed}


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        print(json.dumps(dict(zip(sys.argv[1:], pool.map(changes, sys.argv[1:], chunksize=1), strict=True))))
