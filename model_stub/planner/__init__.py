"""The rules: from the messages of a conversation to the next tool call or answer."""
