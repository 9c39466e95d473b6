package containers

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

// registryLogins is the path of a file with registry logins for image pulls, in the form of
// Docker's config.json or Podman's auth.json. The file is read again for each pull. Errors do not
// contain its content.
type registryLogins string

// registryLogin is the login for a registry, or for a path in a registry.
type registryLogin struct {
	Auth          string `json:"auth"` // base64 of NAME:PASSWORD
	IdentityToken string `json:"identitytoken"`
}

// headerFor returns the login header for an image; "" if there is none.
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

// readLogins returns the logins of the file, by registry and path.
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
		return "", fmt.Errorf("the logins of registries (--registry-auth-file): that of %s has "+
			"neither auth, base64 of NAME:PASSWORD, nor identitytoken; helpers for them are not asked",
			server)
	}
	said.Username, said.Password = name, password
	return authconfig.Encode(said)
}

// dockerHub is the registry of images that name no registry.
const dockerHub = "docker.io"

// repositoryOf returns the repository of an image with its registry, but without tag and digest.
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

// normalizeAddress returns the canonical form of a registry address.
func normalizeAddress(at string) string {
	at = strings.TrimPrefix(strings.TrimPrefix(at, "https://"), "http://")
	at = strings.TrimSuffix(at, "/")
	at = strings.TrimSuffix(strings.TrimSuffix(at, "/v1"), "/v2")
	if h := registryHost(at); h == "index.docker.io" || h == "registry-1.docker.io" {
		return dockerHub + at[len(h):]
	}
	return at
}
