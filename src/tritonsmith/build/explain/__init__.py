"""`build.explain`: why the next build rebuilds what it does."""
