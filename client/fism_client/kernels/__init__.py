"""The compiled passes over a shard. Importing this package imports numba."""

from fism_client.compute.kernel_cache import at_home

with at_home():
    from fism_client.kernels.dense import dense_pass, measure_two, scattered_pass, step
    from fism_client.kernels.losses import Formula, formula_of, value
    from fism_client.kernels.points import dense_probe, dense_value, sparse_probe, sparse_value
    from fism_client.kernels.sets import Region, project, region_of
    from fism_client.kernels.sparse import lazy_ball_pass, lazy_box_pass
    from fism_client.kernels.svmlight import WIDTH, Room, parse

__all__ = [
    "WIDTH",
    "Formula",
    "Region",
    "Room",
    "dense_pass",
    "dense_probe",
    "dense_value",
    "formula_of",
    "lazy_ball_pass",
    "lazy_box_pass",
    "measure_two",
    "parse",
    "project",
    "region_of",
    "scattered_pass",
    "sparse_probe",
    "sparse_value",
    "step",
    "value",
]
