"""The facts about a build for an editor: language servers, debuggers, tasks; merged into its files."""
