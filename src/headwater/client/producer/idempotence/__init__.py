"""Who a producer is, and the sequence numbers of its batches."""
