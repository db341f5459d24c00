"""What tests and benchmarks run Headwater with, or against."""
