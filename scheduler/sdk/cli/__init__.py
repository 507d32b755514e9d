"""The command `cronoq`: a server's work from a terminal, asked of the server through the client."""
