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

// Given holds the secrets of one attempt.
type Given struct {
	Vars  map[string]string // values by the environment variable that holds the secret
	Files map[string]File   // files by the environment variable that holds the path
	Hide  *redact.Redactor  // hides the secrets in output; nil if there are none
}

// File is a secret that is provided as a file.
type File struct {
	Path    string // requested path, as written in the flow
	Content []byte
}

// Give reads the current values of the secrets. It returns no values if a secret is missing.
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

// memory is a folder in memory, not on disk, if the system has such a folder.
const memory = "/dev/shm"

// Unpack writes the files into a folder that only this user can read, and adds variables with their
// paths. Cleanup, which is never nil, removes the files.
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
		path := filepath.Join(dir, filepath.Join("/", file.Path)) // never outside dir
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
