"""What a lake table is: manifests, versions, data files, schemas."""
