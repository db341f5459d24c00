"""Declared pipelines: what a pipeline's file says, read and checked before any Spark starts.

Nothing here imports pyspark. The way of a file: `yaml_document` keeps line and column of all it
reads, `variables` puts values in, `fields.tables` says which fields there are, `sections.reader`
holds a section against its table, and `pipeline_file` makes a `PipelineSpec` of it all or raises a
`PipelineFileError` with every problem found. `pipeline.compiled` takes it from there.
"""
