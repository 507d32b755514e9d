"""Websocket edges: parse, check, adapt. They carry frames and messages and decide nothing about the work itself."""
