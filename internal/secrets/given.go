package secrets

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/redact"
)

// Given are the secrets of one attempt.
type Given struct {
	Vars  map[string]string // by the variable that is to have it
	Files map[string]File   // by the variable that is to say where it is
	Hide  *redact.Redactor  // hides them in what is said; nil = there are none
}

// File is a secret that is wanted as a file.
type File struct {
	Path    string // where it is wanted, as it was written
	Content []byte
}

// Give reads secrets as they are now. When one is missing nothing is given.
func (s *Store) Give(wanted map[string]flow.Secret) (*Given, error) {
	g := &Given{Vars: map[string]string{}, Files: map[string]File{}}
	var values []string
	for _, variable := range slices.Sorted(maps.Keys(wanted)) {
		w := wanted[variable]
		if w.File != "" {
			content, err := s.readSecret(w.Secret)
			if err != nil {
				return nil, fmt.Errorf("secrets.%s: %w", variable, err)
			}
			g.Files[variable] = File{w.File, content}
			values = append(values, string(content))
			continue
		}
		value, err := s.Value(w.Secret)
		if err != nil {
			return nil, fmt.Errorf("secrets.%s: %w", variable, err)
		}
		g.Vars[variable] = value
		values = append(values, value)
	}
	g.Hide = redact.New(values...)
	return g, nil
}

// memory is a folder that is in no disk, where there is one.
const memory = "/dev/shm"

// Unpack writes the files into a folder that nobody else can look into, and adds variables that say
// where they are. Cleanup, which is never nil, removes them.
func (g *Given) Unpack() (cleanup func(), err error) {
	cleanup = func() {}
	if len(g.Files) == 0 {
		return cleanup, nil
	}
	dir, err := os.MkdirTemp(memory, "troupe-secrets-")
	if err != nil {
		if dir, err = os.MkdirTemp("", "troupe-secrets-"); err != nil {
			return cleanup, err
		}
	}
	cleanup = func() { os.RemoveAll(dir) }
	for variable, file := range g.Files {
		path := filepath.Join(dir, filepath.Join("/", file.Path)) // never outside
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return cleanup, err
		}
		if err := os.WriteFile(path, file.Content, 0o600); err != nil {
			return cleanup, err
		}
		g.Vars[variable] = path
	}
	return cleanup, nil
}
