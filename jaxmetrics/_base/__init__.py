"""What every room needs: arrays and their checks, sorting, threads and double precision."""
