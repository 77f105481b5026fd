"""Virtual environments and the distributions in them."""
