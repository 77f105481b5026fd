"""`passes.show --page`: a dump as one HTML file that needs no network and no server."""
