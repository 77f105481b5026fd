"""Questions of the experiments: from compiles, a check or an exit code to an observation with a verdict."""
