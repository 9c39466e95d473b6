// Package console is shared by all commands: their input and output, the client of a server, the
// forms of tables, times and errors, and the flags for them. It knows no command.
package console

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"github.com/troupe-engine/troupe"
)

// Addition adds features to the members of a program, such as starters, trackers and buckets. It is
// a pointer to a struct whose fields become flags of every member.
type Addition interface {
	// Extend changes a member's configuration according to the flags of the addition.
	Extend(cfg *troupe.Config) error
}

// Program holds the differences between programs with this command line.
type Program struct {
	Name      string
	Additions []Addition
}

// App holds the environment of every command.
type App struct {
	Program
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Log            *slog.Logger // destination of failures; nil means text on stderr
}

// ReadFile reads a file, or stdin.
func (a *App) ReadFile(file string) ([]byte, error) {
	f, err := a.OpenFile(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if errors.Is(err, syscall.EISDIR) {
		return nil, fmt.Errorf("%s is a folder: give a file", file)
	}
	return text, err
}

// OpenFile opens a file, or stdin, that is too large to be read as a whole.
func (a *App) OpenFile(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.Stdin), nil
	}
	return os.Open(file)
}
