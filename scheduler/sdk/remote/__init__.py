"""The half of the SDK that speaks with a server over HTTP. It knows nothing of the product but its API."""
