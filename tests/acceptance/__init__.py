"""The product as its users run it: real processes, a real provider, real crashes."""
