package child

import "os"

// canLock says that hold takes a lock: there are none on folders here, so what a killed process has
// left stays.
const canLock = false

func lockFolder(path string) (*os.File, error) { return os.Open(path) }
