// Package secrets provides flows with the secrets listed by the operator: environment variables of
// this process, the files of a folder, and further sources of a program.
//
// Promises:
// - Only listed secrets are read.
// - A file is read each time, so a replaced file takes effect.
// - An error names a secret and never reveals its value.
// - The secrets of an attempt are hidden in all output that passes Given.Hide.
package secrets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
)

// Options lists the sources of secrets.
type Options struct {
	Env []string // names of variables; each is a secret of that name
	// folder whose files are secrets, by file name; "" if there is none
	Dir  string
	More map[string]func() ([]byte, error) // functions that read further secrets, by name
	// names of variables that all programs see in addition to the default ones; none of them is a
	// secret
	Seen []string
}

// Max is the largest size of a secret in bytes.
const Max = 64 << 10

// Store knows the listed secrets. A nil Store knows none.
type Store struct{ opts Options }

var form = regexp.MustCompile(`^` + flow.SecretForm + `$`)

// Open checks that the listed secrets exist.
func Open(o Options) (*Store, error) {
	for _, name := range o.Env {
		if !form.MatchString(name) {
			return nil, fmt.Errorf("secrets: %q is no name of a variable: it has letters, digits and _", name)
		}
		if slices.ContainsFunc(child.Environment(o.Seen), func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			return nil, fmt.Errorf("secrets: all programs see the variable %s, by itself or "+
				"because it is listed (--child-env): it is no secret, so give that another name", name)
		}
		if os.Getenv(name) == "" {
			return nil, fmt.Errorf("secrets: the variable %s, which is listed (--secret-env), is not set", name)
		}
	}
	for name := range o.More {
		if !form.MatchString(name) {
			return nil, fmt.Errorf("secrets: %q can be no name of a secret", name)
		}
	}
	if o.Dir != "" {
		info, err := os.Stat(o.Dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is no folder", o.Dir)
		}
		if err != nil {
			return nil, fmt.Errorf("the folder of secrets (--secret-dir) cannot be used: %w", err)
		}
	}
	return &Store{o}, nil
}

// Listed returns an error if flows may not use the secret with this name.
func (s *Store) Listed(name string) error {
	if s == nil || len(s.opts.Env) == 0 && len(s.opts.More) == 0 && s.opts.Dir == "" {
		return fmt.Errorf("there is no secret %.80q: this server has none for flows; its "+
			"operator lists them with --secret-env or --secret-dir", name)
	}
	if slices.Contains(s.opts.Env, name) || s.opts.More[name] != nil {
		return nil
	}
	if info, err := os.Stat(s.filePath(name)); err == nil && info.Mode().IsRegular() {
		return nil
	}
	text := fmt.Sprintf("there is no secret %.80q among those that the operator lists with --secret-env or --secret-dir", name)
	if near := flow.Nearest(name, s.allNames()); near != "" {
		text += ": did you mean " + near + "?"
	}
	return errors.New(text)
}

// filePath returns the path of a secret's file; "" if the name is not valid.
func (s *Store) filePath(name string) string {
	if s.opts.Dir == "" || !form.MatchString(name) {
		return ""
	}
	return filepath.Join(s.opts.Dir, name)
}

// allNames returns the names of all secrets.
func (s *Store) allNames() []string {
	all := slices.AppendSeq(slices.Clone(s.opts.Env), maps.Keys(s.opts.More))
	if s.opts.Dir == "" {
		return all
	}
	entries, _ := os.ReadDir(s.opts.Dir) // an unreadable folder has no secrets
	for _, e := range entries {
		if form.MatchString(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all
}

// Value returns the current value of a secret without a final line break.
func (s *Store) Value(name string) (string, error) {
	content, err := s.readSecret(name)
	value := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case err != nil:
		return "", err
	case strings.ContainsRune(value, 0):
		return "", fmt.Errorf("the secret %q holds a NUL character, which no variable can: ask for it as a file", name)
	case value == "":
		return "", fmt.Errorf("the secret %q is empty", name)
	}
	return value, nil
}

// readSecret reads a secret with its final line break.
func (s *Store) readSecret(name string) ([]byte, error) {
	if s != nil && slices.Contains(s.opts.Env, name) {
		return []byte(os.Getenv(name)), nil
	}
	if err := s.Listed(name); err != nil {
		return nil, err
	}
	if read := s.opts.More[name]; read != nil {
		return readBounded(name, read)
	}
	file, err := os.Open(s.filePath(name))
	if err != nil {
		return nil, readError(name, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, Max+1))
	switch {
	case err != nil:
		return nil, readError(name, err)
	case len(content) > Max:
		return nil, tooLarge(name)
	}
	return content, nil
}

// readBounded reads a secret from a further source, up to Max bytes.
func readBounded(name string, read func() ([]byte, error)) ([]byte, error) {
	content, err := read()
	switch {
	case err != nil:
		return nil, fmt.Errorf("the secret %q cannot be read: %w", name, err)
	case len(content) > Max:
		return nil, tooLarge(name)
	}
	return content, nil
}

func tooLarge(name string) error {
	return fmt.Errorf("the secret %q is larger than %d bytes", name, Max)
}

// readError returns an error without the path of the file.
func readError(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the secret %q cannot be read: %w", name, err)
}
