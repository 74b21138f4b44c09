"""Gray pictures of text: the glyphs of a font, and pages that are drawn of them."""
