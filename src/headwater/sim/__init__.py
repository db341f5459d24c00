"""Deterministic simulation: real code on a simulated world, replayed by one seed.

Nothing outside tests and tools imports this package; it may import everything.

- `virtual_loop`: an event loop on virtual time, for any number of `process`es that can be killed;
  `clock` is the clock of one machine, `trace` tells whether two runs were the same.
- `disk`: a file system in memory that forgets and tears what was not made durable, with the errors
  and power cuts that a test asks of it. `network`: connections that delay, cut up and lose.
- `broker_host`: a machine with the lives of one broker. `broker_world` has one of them, and
  `cluster_world` three, with the metadata store of `store`, which outlives them; `world` is what
  both have in common. `cluster_observer` sees all brokers at once.
- `clients` produce, read, join groups and copy in transactions, request by request, and write what
  they were told into `histories`. `checkers` are what was promised, one file each.
- `campaigns` put all of it together: a seed decides what happens, and a broken promise raises.
- `hostile` is the other kind of trouble: bytes that no client would send, to a real process.
"""
