"""Trees that `ast` makes: read, walked, changed, compiled, returned."""

import ast


def test_reading():
    tree = ast.parse("a + f(1, x=[2])")
    assert [type(node).__name__ for node in ast.walk(tree)] == [
        *("Module", "Expr", "BinOp", "Name", "Add", "Call", "Load", "Name", "Constant", "keyword", "Load", "List"),
        *("Constant", "Load"),
    ]
    sum_ = tree.body[0].value
    assert isinstance(sum_, ast.BinOp) and sum_._fields == ("left", "op", "right")
    assert (sum_.left.id, sum_.left.col_offset, sum_.right.args[0].value) == ("a", 0, 1)
    assert sum_.left.ctx is sum_.right.func.ctx
    assert ast.dump(tree.body[0].value.left) == "Name(id='a', ctx=Load())"


def test_changed_and_compiled():
    tree = ast.parse("a + 1", mode="eval")
    tree.body.right.value = 41
    code = compile(tree, "<tree>", "eval")
    assert eval(code, {"a": 1}) == 42


def test_transformed():
    class Doubled(ast.NodeTransformer):
        def visit_Constant(self, node):
            node.value *= 2
            return node

    assert ast.unparse(Doubled().visit(ast.parse("x = 3 + 4"))) == "x = 6 + 8"


def test_literals():
    assert ast.literal_eval("[1, {'a': (2, -3.5)}]") == [1, {"a": (2, -3.5)}]


def test_returned():
    tree = ast.parse("a")
    return ast.dump(tree), len(tree.body)


def keeps_a_tree():
    tree = ast.parse("a; b")
    tree.body.pop()
    return tree
