package secrets_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/secrets"
)

func opened(t *testing.T) (s *secrets.Store, dir string) {
	dir = t.TempDir()
	t.Setenv("API_TOKEN", "value of the variable")
	t.Setenv("NOT_LISTED", "hidden away")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db-password"), []byte("hunter22\n"), 0o600))
	s, err := secrets.Open(secrets.Options{Env: []string{"API_TOKEN"}, Dir: dir})
	require.NoError(t, err)
	return s, dir
}

func TestOnlyListedSecretsAreProvided(t *testing.T) {
	s, dir := opened(t)
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "outside"), []byte("hidden away"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	for name, want := range map[string]string{"API_TOKEN": "value of the variable", "db-password": "hunter22"} {
		require.NoError(t, s.Listed(name))
		got, err := s.Value(name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"NOT_LISTED", "PATH", "", ".", "..", "../outside", "folder", "none", dir + "/db-password"} {
		require.ErrorContains(t, s.Listed(name), "there is no secret", name)
		_, err := s.Value(name)
		require.ErrorContains(t, err, "there is no secret", name)
	}
	require.ErrorContains(t, s.Listed("db-pasword"), "did you mean db-password?")
	var none *secrets.Store
	require.ErrorContains(t, none.Listed("x"), "--secret-env or --secret-dir")
}

func TestFurtherSecretsAreReadEachTime(t *testing.T) {
	value, failure := "one", error(nil)
	s, err := secrets.Open(secrets.Options{More: map[string]func() ([]byte,
		error){"db-password": func() ([]byte, error) { return []byte(value), failure }}})
	require.NoError(t, err)
	require.NoError(t, s.Listed("db-password"))
	require.ErrorContains(t, s.Listed("db-pasword"), "did you mean db-password?")
	for _, want := range []string{"one", "two"} {
		value = want
		got, err := s.Value("db-password")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	value = strings.Repeat("x", secrets.Max+1)
	_, err = s.Value("db-password")
	require.ErrorContains(t, err, "is larger than")
	failure = errors.New("out of reach")
	_, err = s.Value("db-password")
	require.EqualError(t, err, `the secret "db-password" cannot be read: out of reach`)
	_, err = secrets.Open(secrets.Options{More: map[string]func() ([]byte, error){"../db": nil}})
	require.ErrorContains(t, err, "can be no name of a secret")
}

func TestFilesAreReadAnew(t *testing.T) {
	s, dir := opened(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db-password"), []byte("another one"), 0o600))
	got, err := s.Value("db-password")
	require.NoError(t, err)
	require.Equal(t, "another one", got)
	require.NoError(t, os.Remove(filepath.Join(dir, "db-password")))
	_, err = s.Value("db-password")
	require.ErrorContains(t, err, `there is no secret "db-password"`)
}

func TestValuesThatNoVariableCanHoldAreRefused(t *testing.T) {
	s, dir := opened(t)
	for name, content := range map[string]string{"empty": "\n", "nul": "a\x00b", "huge": strings.Repeat("x", secrets.Max+1)} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
		_, err := s.Value(name)
		require.ErrorContains(t, err, `the secret "`+name+`"`)
		require.NotContains(t, err.Error(), dir)
	}
}

func TestVariablesSeenByAllProgramsAreNoSecrets(t *testing.T) {
	for _, name := range []string{"HOME", "PATH", "LC_TOKEN", "LISTED"} {
		t.Setenv(name, "value")
		_, err := secrets.Open(secrets.Options{Env: []string{name}, Seen: []string{"LISTED"}})
		require.ErrorContains(t, err, "all programs see the variable "+name)
	}
}

// A pipe or anything else in the folder that is not a file is no secret: reading it could block
// forever.
func TestOnlyFilesAreSecrets(t *testing.T) {
	s, dir := opened(t)
	socket, err := net.Listen("unix", filepath.Join(dir, "socket"))
	require.NoError(t, err)
	defer socket.Close()
	require.ErrorContains(t, s.Listed("socket"), "there is no secret")
	require.NoError(t, os.Symlink("db-password", filepath.Join(dir, "link")))
	require.NoError(t, s.Listed("link"), "Kubernetes mounts them so")
}

func TestListedSecretsMustExist(t *testing.T) {
	t.Setenv("API_TOKEN", "value")
	for _, o := range []secrets.Options{{Env: []string{"API_TOKEN"}, Seen: []string{"API_TOKEN"}},
		{Env: []string{"NO_SUCH_VARIABLE"}}, {Env: []string{"A=B"}}, {Dir: "/nowhere/at/all"},
		{Dir: os.Args[0]}} {
		_, err := secrets.Open(o)
		require.Error(t, err, "%+v", o)
	}
}

func TestAttemptGetsAllSecretsOrNone(t *testing.T) {
	s, _ := opened(t)
	g, err := s.Give(map[string]flow.Secret{"TOKEN": {Secret: "API_TOKEN"},
		"PASSWORD_FILE": {Secret: "db-password", File: "../db/password"}})
	require.NoError(t, err)
	remove, err := g.Unpack()
	require.NoError(t, err)
	require.Equal(t, "value of the variable", g.Vars["TOKEN"])
	path := g.Vars["PASSWORD_FILE"]
	require.True(t, strings.HasSuffix(path, "/db/password"), path)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "hunter22\n", string(content), "as it is")
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode())
	require.Equal(t, "*** ***", g.Hide.Text("value of the variable hunter22"))
	remove()
	require.NoFileExists(t, path)

	_, err = s.Give(map[string]flow.Secret{"TOKEN": {Secret: "API_TOKEN"}, "X": {Secret: "none"}})
	require.ErrorContains(t, err, `secrets.X: there is no secret "none"`)
}
