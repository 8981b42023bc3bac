"""The console's pages about tickets and tasks."""
