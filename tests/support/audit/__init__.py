"""What tests of the audit share."""
