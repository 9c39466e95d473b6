package sqlite

// checkNames refuses nothing, because the names of a file are not counted here.
func checkNames(string) error { return nil }
