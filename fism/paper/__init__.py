"""The paper's experiments: one module each, and what they write."""
