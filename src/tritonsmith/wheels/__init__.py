"""Virtual environments, and what is installed into them or removed from them."""
