"""Where values come from (sources), what is assumed about them (guards), and the program that checks it."""
