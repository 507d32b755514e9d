"""Pure knowledge of model providers: delays, errors, usage, rate-limit headers, streams. No I/O, no clock."""
