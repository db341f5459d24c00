"""Workers: handlers of records whose failures go round a retry topic, and none is lost."""
