"""Views of a compiled kernel or of a dump: resources, stages, layouts, passes, findings."""
