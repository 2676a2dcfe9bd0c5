"""Where random bits come from, and what every exact draw is."""
