"""Formulas as MathML, which browsers draw themselves: no script, nothing from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the renderer under the name `mathml`."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(writer: HTML5Translator, node: nodes.math) -> None:
    """Within a line."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer: HTML5Translator, node: nodes.math_block) -> None:
    """On lines of its own, which may scroll sideways."""
    mathml = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula" tabindex="0">{mathml}</div>')
    raise nodes.SkipNode
