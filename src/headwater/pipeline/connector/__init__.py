"""The source behind `format("headwater")`: options, offsets, planning, and reading ranges."""
