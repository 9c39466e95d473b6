package console

import (
	"errors"
	"fmt"
)

// ErrMistaken is the error of a command that has already reported faults in files.
var ErrMistaken = errors.New("invalid files")

// ErrFailed is the error of a command that has already reported the failure.
var ErrFailed = errors.New("failed")

// UsageError is a fault of the command line that only the command itself could detect.
type UsageError struct{ Err error }

func (e UsageError) Error() string { return e.Err.Error() }

// NewUsageError returns an error about the command line.
func NewUsageError(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
