"""What tests of the journal and the engine share: servers, fleets, a world without clocks."""
