"""The interpreter that Stator runs in, as far as Stator has it do something: garbage collection, imports of others."""
