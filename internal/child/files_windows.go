package child

import "os"

// locks says that hold takes a lock: there are none on folders here, so what a killed process has left stays.
const locks = false

func hold(path string) (*os.File, error) { return os.Open(path) }
