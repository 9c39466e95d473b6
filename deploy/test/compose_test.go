package deploy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	composeloader "github.com/compose-spec/compose-go/v2/loader"
	compose "github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// composed loads the compose file with the secrets of its script.
func composed(t *testing.T) *compose.Project {
	t.Helper()
	dir := t.TempDir()
	output(t, "../compose/secrets.sh", dir)
	text, err := os.ReadFile(filepath.Join(dir, ".env"))
	require.NoError(t, err)
	env := compose.Mapping{}
	for _, line := range strings.Fields(string(text)) {
		name, value, _ := strings.Cut(line, "=")
		env[name] = value
	}
	config, err := os.ReadFile("../compose/compose.yaml")
	require.NoError(t, err)
	project, err := composeloader.LoadWithContext(t.Context(), compose.ConfigDetails{
		WorkingDir: dir, Environment: env,
		ConfigFiles: []compose.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml"), Content: config}},
	}, func(o *composeloader.Options) { o.SetProjectName("troupe", true) })
	require.NoError(t, err)
	return project
}

func TestComposeHasThreeMembersPostgreSQLAndTwoWorkers(t *testing.T) {
	project := composed(t)
	require.Equal(t, []string{"member-1", "member-2", "member-3", "postgres", "worker-1", "worker-2"}, project.ServiceNames())
	published := map[string]bool{}
	for i := range 3 {
		name := "member-" + strconv.Itoa(i+1)
		s := project.Services[name]
		env := func(key string) string { require.NotNil(t, s.Environment[key], key); return *s.Environment[key] }
		require.Equal(t, name, env("TROUPE_NAME"))
		require.Equal(t, "http://"+name+":8070", env("TROUPE_ADVERTISE"))
		require.Contains(t, strings.Split(env("TROUPE_JOIN"), ","), name+":8071")
		require.Contains(t, strings.Split(env("TROUPE_ALLOW_HOST"), ","), name)
		require.Regexp(t, `^postgres://troupe:\w{20,}@postgres/troupe$`, env("TROUPE_STORE"))
		require.GreaterOrEqual(t, len(env("TROUPE_TOKEN")), 20)
		require.Len(t, s.Secrets, 2)
		for _, secret := range s.Secrets {
			require.FileExists(t, project.Secrets[secret.Source].File)
			require.Contains(t, s.Environment.Resolve(nil).ToMapping(),
				"TROUPE_"+strings.ToUpper(strings.ReplaceAll(secret.Source, "-", "_"))+"_FILE")
		}
		require.Equal(t, "127.0.0.1", s.Ports[0].HostIP, "for this host alone")
		require.False(t, published[s.Ports[0].Published])
		published[s.Ports[0].Published] = true
		require.Equal(t, "service_healthy", s.DependsOn["postgres"].Condition)
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		require.True(t, project.Services[name].HealthCheck.Disable, "the image's check is for members")
	}
	key, err := os.ReadFile(project.Secrets["gossip-key"].File)
	require.NoError(t, err)
	isKey(t, key)
}

func TestSecretsAreMadeOnce(t *testing.T) {
	dir := t.TempDir()
	read := func() (all string) {
		for _, file := range []string{".env", "secrets/gossip-key", "secrets/cluster-secret"} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			require.NoError(t, err)
			all += string(text)
		}
		return all
	}
	output(t, "../compose/secrets.sh", dir)
	before := read()
	output(t, "../compose/secrets.sh", dir)
	require.Equal(t, before, read())
	info, err := os.Stat(filepath.Join(dir, "secrets"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
}
