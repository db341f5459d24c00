"""What a broker or a cluster promises, one promise a file, each with the check of it.

A check compares what clients were told, as `history` has it, or what somebody who sees all brokers
at once observed, with what is there. It raises `PropertyViolated`, whose text names the promise and
the first thing that contradicts it. `every_promise` puts those together that concern what is read
in the end.
"""
