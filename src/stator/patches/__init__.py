"""Changes of a program that take a break or a recompile away: small edits of its source, a file each kind of them.

They are offers. What an edit may change besides is for a trial to find out (`stator.commands.fix`).
"""
