"""A site: knows its own shard, never the outer objective H."""
