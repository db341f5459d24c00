"""Runs of declared pipelines: where they live on disk, how they are watched, told of and stopped.

A run owns a directory of state: a lock that the kernel gives back however the run ends, `run.json`
with its progress, and a file by which others ask it to stop. `running_pipeline` is the loop around
the queries; `pipeline_run` puts a Spark session, the compiled pipeline and that loop together.
"""
