"""A command that runs again whenever a file that it depends on is saved."""
