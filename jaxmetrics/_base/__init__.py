"""What all packages share: arrays and their checks, sorting, threads and double precision."""
