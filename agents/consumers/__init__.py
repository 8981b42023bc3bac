"""The chat's WebSocket, `/ws/chat/`. docs/chat.md describes its frames."""

from agents.consumers.sockets import chat, nobody

__all__ = ["chat", "nobody"]
