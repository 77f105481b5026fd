"""`build-triton --explain`: the reasons for what the next build will rebuild."""
