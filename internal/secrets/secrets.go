// Package secrets gives flows the secrets that an operator lists: variables of this process's
// environment, the files of a folder, and what else a program knows how to read.
//
// Promises: nothing is read that is not listed; a file is read anew each time, so what was replaced
// is found; an error names a secret and never tells its value; what was given for an attempt is
// hidden wherever Given.Hide is asked.
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

// Options say where secrets are.
type Options struct {
	Env  []string                          // names of variables; each is the secret of that name
	Dir  string                            // folder whose files are secrets, by their names; "" = none
	More map[string]func() ([]byte, error) // further ones, by their names: how each is read
	Seen []string                          // names of variables that all programs see, beside those that they always do: no secret is one of them
}

// Max is how many bytes a secret has at most.
const Max = 64 << 10

// Store knows the secrets that are listed. A nil one knows none.
type Store struct{ opts Options }

var form = regexp.MustCompile(`^` + flow.SecretForm + `$`)

// Open looks whether what is listed is there.
func Open(o Options) (*Store, error) {
	for _, name := range o.Env {
		if !form.MatchString(name) {
			return nil, fmt.Errorf("secrets: %q is no name of a variable: it has letters, digits and _", name)
		}
		if slices.ContainsFunc(child.Environment(o.Seen), func(entry string) bool { return strings.HasPrefix(entry, name+"=") }) {
			return nil, fmt.Errorf("secrets: all programs see the variable %s, by itself or because it is listed (--child-env): it is no secret, so give that another name", name)
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

// Listed refuses the name of a secret that flows are not given.
func (s *Store) Listed(name string) error {
	if s == nil || len(s.opts.Env) == 0 && len(s.opts.More) == 0 && s.opts.Dir == "" {
		return fmt.Errorf("there is no secret %.80q: this server has none for flows; its operator lists them with --secret-env or --secret-dir", name)
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

// filePath is where a secret would be; "" for a name that none can have.
func (s *Store) filePath(name string) string {
	if s.opts.Dir == "" || !form.MatchString(name) {
		return ""
	}
	return filepath.Join(s.opts.Dir, name)
}

// allNames are those of all secrets.
func (s *Store) allNames() []string {
	all := slices.AppendSeq(slices.Clone(s.opts.Env), maps.Keys(s.opts.More))
	if s.opts.Dir == "" {
		return all
	}
	entries, _ := os.ReadDir(s.opts.Dir) // a folder that cannot be read has none
	for _, e := range entries {
		if form.MatchString(e.Name()) {
			all = append(all, e.Name())
		}
	}
	return all
}

// Value is what a secret is at this moment, without the end of its last line.
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

// readSecret reads a secret as it is.
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

// readBounded reads a secret that is elsewhere.
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

// readError is an error without where the file is.
func readError(name string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("the secret %q cannot be read: %w", name, err)
}
