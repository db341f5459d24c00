"""The polling thread's side: what was fetched is handed out, and events are heard."""
