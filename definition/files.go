package definition

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// MaxText is the maximum size in bytes of a file that a definition includes.
const MaxText = 1 << 20

// Text reads a file that a definition includes. If it does not exist, the error is fs.ErrNotExist.
func Text(files fs.FS, name string) ([]byte, error) {
	file, err := files.Open(name)
	if err != nil {
		return nil, Reason(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxText+1))
	switch {
	case err != nil:
		return nil, Reason(err)
	case len(text) > MaxText:
		return nil, fmt.Errorf("it has more than %d bytes", MaxText)
	}
	return text, nil
}

// Reason returns why a file cannot be read. The text does not contain the name of the file, which
// is reported as the place.
func Reason(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// In returns the problems with the given file: an included file, by its path relative to the
// definition's files.
func (p Problems) In(file string) Problems {
	in := make(Problems, len(p))
	for i, problem := range p {
		problem.File = file
		in[i] = problem
	}
	return in
}
