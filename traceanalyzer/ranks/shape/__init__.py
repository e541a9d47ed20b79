"""The shape of a job: where its time is lost by kind of parallelism, rank, step, host and stage, and whether that is anyone's doing."""
