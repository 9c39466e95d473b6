package containers

import (
	"maps"
	"path"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/redact"
)

// secretFolder is the default folder of secret files in a container.
const secretFolder = "/run/secrets"

// withSecrets returns a program with the current values of its secrets in variables and files.
func (s *Service) withSecrets(p *flow.Program) (with *flow.Program, files []containerFile, hide *redact.Redactor, err error) {
	if len(p.Secrets) == 0 {
		return p, nil, nil, nil
	}
	given, err := s.opts.Secrets.Give(p.Secrets)
	if err != nil {
		return nil, nil, nil, err
	}
	own := *p
	own.Env = map[string]string{}
	maps.Copy(own.Env, p.Env)
	maps.Copy(own.Env, given.Vars)
	for variable, f := range given.Files {
		at := f.Path
		if !path.IsAbs(at) {
			at = path.Join(secretFolder, path.Join("/", at)) // never outside of secretFolder
		}
		own.Env[variable] = path.Clean(at)
		files = append(files, containerFile{own.Env[variable], f.Content})
	}
	return &own, files, given.Hide, nil
}

// hiddenSecrets holds the redactor for a container's output.
type hiddenSecrets struct {
	values *redact.Redactor
	since  time.Time
}

// rememberSecrets stores the redactor for a container's output while the container is watched.
func (s *Service) rememberSecrets(name string, values *redact.Redactor) {
	if values == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[name] = hiddenSecrets{values, time.Now()}
}

// redactorFor returns the redactor of a container. If another member started the container, it
// reads the secrets again. The caller holds the lock.
func (s *Service) redactorFor(name string, n *trackerNote) (*redact.Redactor, error) {
	if known := s.hidden[name]; known.values != nil || len(n.Secrets) == 0 {
		return known.values, nil
	}
	given, err := s.opts.Secrets.Give(n.Secrets)
	if err != nil {
		return nil, err
	}
	s.hidden[name] = hiddenSecrets{given.Hide, time.Now()}
	return given.Hide, nil
}
