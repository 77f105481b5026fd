"""Output for people: consoles, tables, progress bars, HTML pages."""
