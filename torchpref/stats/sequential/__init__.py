"""Looking while runs arrive: when a difference is established, when it no longer can be, and what to run next."""
