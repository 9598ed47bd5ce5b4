"""A campaign that interrupts writers at random moments and lets them race: `make torture`."""
