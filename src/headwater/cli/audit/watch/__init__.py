"""`headwater audit watch`: rules over the books of topics, and alarms that begin and end."""
