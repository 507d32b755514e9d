"""The half of the SDK that runs the product inside the caller's process; imported when a scheduler starts."""
