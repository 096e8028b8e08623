"""Tables in files, as polars frames."""
