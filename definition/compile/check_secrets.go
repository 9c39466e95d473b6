package compile

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

var secretName = regexp.MustCompile(`^` + flow.SecretForm + `$`)

// checkSecrets checks the secrets of a program. The secrets of workers are unknown here.
func (c *checker) checkSecrets(e *definition.ExecOf, at *definition.Place) {
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		secret, at := e.Secrets[name], at.Key(name)
		_, twice := e.Env[name]
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			c.Errorf(at, "is no name of a variable")
		case twice:
			c.Errorf(at, "is said by env already: give one of them")
		case !secretName.MatchString(secret.Secret):
			c.Errorf(at, "%.80q is no name of a secret: it has up to 128 letters, digits, _, - "+
				"and ., and does not begin with - or .", secret.Secret)
		case secret.File != "" && !isFile(secret.File):
			c.Errorf(at.Key("file"), "is no path of a file")
		case e.Service == "" && c.site.Secret != nil:
			if err := c.site.Secret(secret.Secret); err != nil {
				c.Errorf(at, "%s", err)
			}
		}
	}
	c.secretFiles(e, at)
}

// isFile reports whether the path can be the path of a file.
func isFile(file string) bool {
	return !strings.ContainsRune(file, 0) && !strings.HasSuffix(file, "/") && path.Clean("/"+file) != "/"
}

// secretFiles checks that the files of secrets do not conflict.
func (c programChecker) secretFiles(e *definition.ExecOf, at *definition.Place) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(e.Secrets)) {
		if file := e.Secrets[name].File; file != "" && isFile(file) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		for _, other := range names[:i] {
			one, two := secretFile(e, name), secretFile(e, other)
			switch {
			case one == two:
				c.Errorf(at.Key(name).Key("file"), "is the file of %.80s already", other)
			case strings.HasPrefix(one, two+"/"):
				c.Errorf(at.Key(name).Key("file"), "is below the file of %.80s", other)
			case strings.HasPrefix(two, one+"/"):
				c.Errorf(at.Key(other).Key("file"), "is below the file of %.80s", name)
			}
		}
	}
}

// secretFile returns the path of a secret's file, in the folder of the attempt or in a container.
func secretFile(e *definition.ExecOf, name string) string {
	file := e.Secrets[name].File
	if flow.ExecType(e.Type) == flow.ExecContainer && !path.IsAbs(file) {
		return path.Join("/run/secrets", path.Join("/", file))
	}
	return path.Join("/", file)
}
