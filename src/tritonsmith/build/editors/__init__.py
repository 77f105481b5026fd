"""What an editor is told about a build: language servers, debuggers, tasks; merged into its files."""
