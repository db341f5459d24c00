"""From a declaration to Spark: what a declared pipeline does when it runs.

`compiled_pipeline.compile_pipeline` makes frames of sources (`topic_source`) and steps
(`step_frames`), and starts one query for each sink (`sinks.queries`) and one for the dead
letters of each source (`dead_letters`). What is decided without Spark is in modules of its own:
options (`connector_options`), Avro's types (`avro_types`), why a value is bad (`bad_json`), what a
failure of Spark means (`spark_failures`), which jars a table format needs (`table_formats`).
"""
