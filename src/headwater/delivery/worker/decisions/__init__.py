"""What a worker decides, without clients, threads and clocks."""
