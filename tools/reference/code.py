"""What the source says that is gone when it runs: the texts below attributes of classes."""

from __future__ import annotations

import ast
import inspect
import textwrap


def attribute_docs(cls: type) -> dict[str, str]:
    """Return the docstrings below the attributes of a class, by name."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for above, below in zip(tree.body, tree.body[1:], strict=False):
        if not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
            continue
        target = above.targets[0] if isinstance(above, ast.Assign) else above
        target = target.target if isinstance(target, ast.AnnAssign) else target
        if isinstance(target, ast.Name) and isinstance(below.value.value, str):
            found[target.id] = " ".join(below.value.value.split())
    return found
