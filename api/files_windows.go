package api

// fileLimit is how many file descriptors this process may have. Here there is no such bound.
func fileLimit() int { return 2 * mostConnections }
