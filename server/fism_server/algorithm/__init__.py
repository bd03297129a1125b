"""The algorithm. It sees sums over clients only, and has no gRPC, asyncio, clock or disk."""
