"""The controller: elected, it writes what the cluster agrees on."""
