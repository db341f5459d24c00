"""Pipelines that come with Headwater, each a small file to run as it is or to copy and change."""
