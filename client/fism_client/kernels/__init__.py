"""The compiled passes over a shard. Importing this package imports numba."""

from fism_client.compute.kernel_cache import at_home

with at_home():
    from fism_client.kernels.dense import dense_pass, measure_two, scattered_pass, step
    from fism_client.kernels.gradients import dense_gradient, sparse_gradient
    from fism_client.kernels.losses import Formula, value
    from fism_client.kernels.sets import Region, project
    from fism_client.kernels.sparse import lazy_ball_pass, lazy_box_pass
    from fism_client.kernels.svmlight import WIDTH, Room, parse

__all__ = [
    "WIDTH",
    "Formula",
    "Region",
    "Room",
    "dense_gradient",
    "dense_pass",
    "lazy_ball_pass",
    "lazy_box_pass",
    "measure_two",
    "parse",
    "project",
    "scattered_pass",
    "sparse_gradient",
    "step",
    "value",
]
