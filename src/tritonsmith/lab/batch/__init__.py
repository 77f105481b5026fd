"""Many kernels compiled by many Tritons: processes of this machine or a Dask cluster do the work."""
