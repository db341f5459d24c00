"""The layers below put together: replication, coordinators, and what follows the image."""
