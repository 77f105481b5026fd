"""Where units of work run: processes of this machine, or a Dask cluster; both as `Executor`s."""
