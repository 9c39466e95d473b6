//go:build !linux

package containerhost

import "errors"

// Image is the name of the image for containers.
const Image = "localhost/troupe-checks"

// Host is a private container host. This system does not support it.
type Host struct{ URL string }

// Start returns an error.
func Start(string) (*Host, error) {
	return nil, errors.New("containers are checked on Linux only")
}

// Stop does nothing.
func (*Host) Stop() {}
