package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnEmptyPlaceIsRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	for text, args := range map[string][]string{
		"--store is empty":         {"serve", "--store", ""},
		"--object-store is empty":  {"serve", "--object-store="},
		"--script-dir is empty":    {"serve", "--script-dir", ""},
		"--secret-dir is empty":    {"dev", "--secret-dir", ""},
		"--tls-cert is empty":      {"serve", "--tls-cert", ""},
		"--listen is empty":        {"serve", "--listen", ""},
		"--server is empty":        {"task", "list", "--server", ""},
		"--working-dir is empty":   {"worker", "run", "--working-dir="},
		"--payload-store is empty": {"serve", "--payload-store", ""},
		"--wait-until is empty":    {"task", "start", "x", "--wait-until="},
	} {
		got := call(t, args...)
		require.Equal(t, exitUsage, got.code, "%v: %s", args, got.stderr)
		require.Contains(t, got.stderr, text)
	}
	require.NoFileExists(t, "troupe.db")
}

func TestAnEmptyVariableOfAPlaceIsRefused(t *testing.T) {
	for name, args := range map[string][]string{
		"TROUPE_STORE": {"serve"}, "TROUPE_SECRET_DIR": {"serve"}, "TROUPE_TLS_CERT": {"serve"},
		"SCHEDULER_DB": {"serve"}, "TROUPE_SERVER": {"task", "list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			t.Setenv(name, "")
			got := call(t, args...)
			require.Equal(t, exitUsage, got.code, got.stderr)
			require.Contains(t, got.stderr, "the variable "+name+" is set but empty")
			require.NoFileExists(t, "troupe.db")
		})
	}
}

func TestAStoreThatNamesNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for store, text := range map[string]string{
		"sqlite:":                   "names no file",
		"sqlite::memory:":           "would be in memory",
		"sqlite:x.db?mode=memory":   "would be in memory",
		"sqlite:x.db?mode=ro":       "write sqlite:x.db",
		"sqlite:file:x.db?cache=no": "has options",
		"sqlite:file:x.db":          "write the path alone, sqlite:x.db",
		"sqlite://x.db":             "write sqlite:x.db",
		"sqlite:" + dir:             "is a folder: name a file in it, such as " + filepath.Join(dir, "troupe.db"),
		"sqlite:new/":               "names a folder",
		"x.db":                      "neither sqlite:PATH nor",
	} {
		got := call(t, "serve", "--listen", "127.0.0.1:0", "--store", store)
		require.Equal(t, exitFailed, got.code, "%s: %s", store, got.stderr)
		require.Contains(t, got.stderr, text, store)
	}
	made, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, made)
}
