"""Groups that change their protocol while their members go on."""
