package transport

// fileLimit returns the number of file descriptors that this process may have. Windows has no such
// limit.
func fileLimit() int { return 2 * mostConnections }
