// Package secrets reads secrets of Secret Manager for flows that name them.
//
// Promises: only secrets listed by the operator are read, each time from the API. An error names a
// secret and never reveals its value.
package secrets

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	secretmanager "google.golang.org/api/secretmanager/v1"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/cloud/internal/google"
)

// Options configure a Manager.
type Options struct {
	Client   *http.Client
	Endpoint string // "" for the default endpoint
	Project  string // default for secrets that do not specify one
}

// Manager reads secrets.
type Manager struct {
	opts     Options
	versions *secretmanager.ProjectsSecretsVersionsService
}

// New returns a Manager.
func New(o Options) (*Manager, error) {
	api, err := secretmanager.NewService(context.Background(), google.Options(o.Client, o.Endpoint)...)
	if err != nil {
		return nil, fmt.Errorf("the client of Secret Manager: %w", err)
	}
	return &Manager{o, api.Projects.Secrets.Versions}, nil
}

var versionForm = regexp.MustCompile(`^projects/[\w.:-]+/secrets/[\w-]+/versions/[\w-]+$`)

// versionName returns the full version name for a text: the name of a secret in the default
// project, or a full name with or without a version.
func (m *Manager) versionName(text string) (string, error) {
	name := text
	if !strings.Contains(name, "/") {
		if m.opts.Project == "" {
			return "", fmt.Errorf("the secret %q has no project: write projects/ID/secrets/%s, "+
				"or name one with --cloud-project", text, text)
		}
		name = "projects/" + m.opts.Project + "/secrets/" + name
	}
	if !strings.Contains(name, "/versions/") {
		name += "/versions/latest"
	}
	if !versionForm.MatchString(name) {
		return "", fmt.Errorf("%q is no secret such as projects/ID/secrets/NAME or projects/ID/secrets/NAME/versions/3", text)
	}
	return name, nil
}

// stays is the time limit for an answer.
const stays = 20 * time.Second

// Secret returns a function that reads the secret.
func (m *Manager) Secret(text string) (troupe.ReadSecret, error) {
	name, err := m.versionName(text)
	if err != nil {
		return nil, err
	}
	return func() ([]byte, error) {
		ctx, cancel := context.WithTimeout(context.Background(), stays)
		defer cancel()
		answer, err := m.versions.Access(name).Context(ctx).Do()
		if err != nil {
			return nil, fmt.Errorf("its cloud answers: %s", google.Text(err))
		}
		if answer.Payload == nil {
			return nil, nil
		}
		return base64.StdEncoding.DecodeString(answer.Payload.Data)
	}, nil
}
