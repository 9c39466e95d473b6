package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
)

func TestFilesOfVariablesAreRead(t *testing.T) {
	got, err := readVariables("# comment\n\nA=1\nexport B = two words # comment\nC='x # y'\nD=\"line\\nline\" # comment\nE=\nF=a=b#c\n")
	require.NoError(t, err)
	require.Equal(t, []envVariable{{"A", "1"}, {"B", "two words"}, {"C", "x # y"}, {"D", "line\nline"}, {"E", ""}, {"F", "a=b#c"}}, got)
	for text, want := range map[string]string{"A=1\nB": `2: "B": write NAME=value`,
		"A='x": "1: the value of A has no closing quote", `A="x`: "1: the value of A", "=x": "1:",
		"A B=x": "1:"} {
		_, err := readVariables(text)
		require.ErrorContains(t, err, want, text)
	}
}

func TestProgramsSeeTheVariablesOfTheFileForDevelopment(t *testing.T) {
	for _, name := range []string{"ORK_TEST_NEW", "ORK_TEST_KEY"} {
		t.Setenv(name, "") // restores it after the test
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("ORK_TEST_SET", "before")
	dir, wrong := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "conf"), 0o700))
	for path, text := range map[string]string{
		filepath.Join(dir, "ork.yaml"):     "env_file: conf/.env\n",
		filepath.Join(dir, "conf", ".env"): "ORK_TEST_NEW=1\nORK_TEST_SET=2\nORK_TEST_KEY=3\n",
		filepath.Join(wrong, "ork.yaml"):   "env_file: .env\n",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	cfg := troupe.Config{ChildEnv: []string{"X"}, SecretEnv: []string{"ORK_TEST_KEY"}}
	require.NoError(t, loadEnvFile(&cfg, dir))
	require.Equal(t, []string{"X", "ORK_TEST_NEW", "ORK_TEST_SET"}, cfg.ChildEnv)
	require.Equal(t, []string{"1", "before", "3"}, []string{os.Getenv("ORK_TEST_NEW"),
		os.Getenv("ORK_TEST_SET"), os.Getenv("ORK_TEST_KEY")})

	require.NoError(t, loadEnvFile(&cfg, t.TempDir()))
	require.ErrorContains(t, loadEnvFile(&cfg, wrong), "env_file of "+filepath.Join(wrong, "ork.yaml"))
	require.NoError(t, os.WriteFile(filepath.Join(wrong, ".env"), []byte("A"), 0o600))
	require.ErrorContains(t, loadEnvFile(&cfg, wrong), filepath.Join(wrong, ".env")+`:1: "A": write NAME=value`)
}
