"""`knockout`: each pass of a kernel's pipelines left out in turn."""
