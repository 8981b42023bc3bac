"""The console's pages about people and shops: signing in, one's own sign-in, settings, colleagues."""
