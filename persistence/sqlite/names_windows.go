package sqlite

// checkNames finds nothing to refuse: a file's names are not counted here.
func checkNames(string) error { return nil }
