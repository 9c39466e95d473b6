package child

// isExhausted reports whether an error is a shortage of resources that may pass soon. Windows has
// no such limit on handles.
func isExhausted(error) bool { return false }
