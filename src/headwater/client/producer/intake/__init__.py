"""The caller's half: interceptors, serializers, partitioners, routes to topics."""
