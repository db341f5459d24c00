"""Replicas that may take only so many bytes a second, so that they leave the rest to others."""
