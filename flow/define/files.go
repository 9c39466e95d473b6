package define

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// MaxText is how many bytes a file may have that a definition brings in.
const MaxText = 1 << 20

// Text reads a file that a definition brings in. Where there is none the error is fs.ErrNotExist.
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

// Reason is why a file cannot be read, without its name, which is told as the place.
func Reason(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// In are the problems as those of another file that a definition brings in, by its path from where
// that one's files are.
func (p Problems) In(file string) Problems {
	in := make(Problems, len(p))
	for i, problem := range p {
		problem.File = file
		in[i] = problem
	}
	return in
}
