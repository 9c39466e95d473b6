package container

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

// registryLogins are the file of an operator that says as whom images are fetched, in the form of
// Docker's config.json and of Podman's auth.json. It is read anew for each image. None of what it
// holds is in an error.
type registryLogins string

// registryLogin is what the file says of one registry, or of what is below a path of it.
type registryLogin struct {
	Auth          string `json:"auth"` // base64 of NAME:PASSWORD
	IdentityToken string `json:"identitytoken"`
}

// headerFor is what is sent with the request for an image; "" = nobody in particular asks.
func (l registryLogins) headerFor(image string) (header string, err error) {
	all, err := l.readLogins()
	if err != nil {
		return "", err
	}
	for at := repositoryOf(image); ; {
		if one, ok := all[at]; ok {
			return one.authHeader(registryHost(at))
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return "", nil
		}
		at = at[:i]
	}
}

// readLogins is what the file says, by registry and path.
func (l registryLogins) readLogins() (map[string]registryLogin, error) {
	if l == "" {
		return nil, nil
	}
	text, err := os.ReadFile(string(l))
	if err != nil {
		return nil, fmt.Errorf("the logins of registries (--registry-auth-file): %w", err)
	}
	var file struct {
		Auths map[string]registryLogin `json:"auths"`
	}
	if json.Unmarshal(text, &file) != nil {
		return nil, fmt.Errorf("the logins of registries (--registry-auth-file): %s is not like Docker's config.json", string(l))
	}
	all := map[string]registryLogin{}
	for at, one := range file.Auths {
		all[normalizeAddress(at)] = one
	}
	return all, nil
}

func (l *registryLogin) authHeader(server string) (string, error) {
	said := registry.AuthConfig{ServerAddress: server, IdentityToken: l.IdentityToken}
	both, err := base64.StdEncoding.DecodeString(l.Auth)
	name, password, ok := strings.Cut(string(both), ":")
	if l.IdentityToken == "" && (err != nil || !ok) {
		return "", fmt.Errorf("the logins of registries (--registry-auth-file): that of %s has neither auth, base64 of NAME:PASSWORD, nor identitytoken; helpers for them are not asked", server)
	}
	said.Username, said.Password = name, password
	return authconfig.Encode(said)
}

// dockerHub is the registry of images that name none.
const dockerHub = "docker.io"

// repositoryOf is where an image comes from, with its registry and without tag and digest.
func repositoryOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	first, _, ok := strings.Cut(name, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return normalizeAddress(name)
	}
	return dockerHub + "/" + name
}

func registryHost(repository string) string {
	at, _, _ := strings.Cut(repository, "/")
	return at
}

// normalizeAddress writes an address in one of the ways in which it is written.
func normalizeAddress(at string) string {
	at = strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
	at = strings.TrimSuffix(at, "/")
	at = strings.TrimSuffix(strings.TrimSuffix(at, "/v1"), "/v2")
	if h := registryHost(at); h == "index.docker.io" || h == "registry-1.docker.io" {
		return dockerHub + at[len(h):]
	}
	return at
}
