package troupe_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
)

// hidden is the value of a secret, which must not appear anywhere.
const hidden = "hunter2 & \"more\" of it"

// keepsSecrets opens an engine that runs programs, and has a secret called db.
func keepsSecrets(t *testing.T) (e *troupe.Engine, files string) {
	files = t.TempDir()
	secrets := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "db"), []byte(hidden), 0o600))
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(files,
		"x.db"), AllowScripts: true, ScriptDir: t.TempDir(), SecretDir: secrets})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e, files
}

// indiscreet has programs that reveal their secret in every possible way, in a node that succeeds
// and in one that fails.
const indiscreet = `
nodes:
  tells:
    exec:
      type: process
      command: |
        echo "the log: $PASSWORD"; echo "and: $PASSWORD" >&2; printf %s "$PASSWORD" | base64
        printf 'ORK_OUTPUT:{"as it is": "%s"}\n' "$(printf %s "$PASSWORD" | sed 's/"/\\"/g')"
      secrets: {PASSWORD: db}
  fails:
    exec: {type: process, command: 'echo "wrong password: $PASSWORD" >&2; exit 1', secrets: {PASSWORD: db}}
`

func TestTheValueOfASecretAppearsNowhere(t *testing.T) {
	for _, mode := range []string{"mode: dag\n", "start: tells\nedges: [{from: tells, action: default, to: fails}]\n"} {
		e, files := keepsSecrets(t)
		require.NoError(t, e.Publish(t.Context(), "indiscreet", []byte(mode+indiscreet)))
		id, err := e.Start(t.Context(), "indiscreet", nil)
		require.NoError(t, err)
		result, err := e.Wait(t.Context(), id)
		require.NoError(t, err)
		require.Contains(t, result.Error, "wrong password: ***")

		answers := result.Error + string(result.Value)
		tell := func(answer any, err error) {
			require.NoError(t, err)
			text, err := json.Marshal(answer)
			require.NoError(t, err)
			answers += string(text)
		}
		tell(e.Task(t.Context(), id))
		tell(e.Runs(t.Context(), id, troupe.Paging{}))
		tell(e.Events(t.Context(), id, "", 500))
		tell(logged(t, e, id, 4), nil)
		require.Contains(t, answers, "the log: ***")
		require.Contains(t, answers, `{"as it is":"***"}`)
		requireHidden(t, answers)
		require.NoError(t, e.Close())
		requireInNoFile(t, files)
	}
}

// requireHidden checks for the value as it is, as JSON, and in base64.
func requireHidden(t *testing.T, text string) {
	t.Helper()
	for _, form := range []string{hidden, `hunter2`, base64.StdEncoding.EncodeToString([]byte(hidden))[:16]} {
		require.NotContains(t, text, form)
	}
}

func requireInNoFile(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		require.NoError(t, err)
		requireHidden(t, string(content))
	}
}

func TestAnUnlistedSecretIsRejectedWithItsPlace(t *testing.T) {
	e, _ := keepsSecrets(t)
	for _, start := range []string{"", "start: a\n"} {
		err := e.Publish(t.Context(), "asks",
			[]byte(start+"nodes:\n  a:\n    exec: {type: process, command: x, secrets: {A: db, B: HOME}}\n"))
		line := "3"
		if start != "" {
			line = "4"
		}
		require.ErrorContains(t, err, line+":59: nodes.a.exec.secrets.B: there is no secret "+
			"\"HOME\" among those that the operator lists with --secret-env or --secret-dir")
		require.NotContains(t, err.Error(), "secrets.A")
	}
	require.NoError(t, e.Publish(t.Context(), "asks",
		[]byte("nodes: {a: {exec: {type: process, service: elsewhere, command: x, secrets: {B: theirs}}}}")),
		"what workers have is known to them alone")
	none := opened(t)
	require.ErrorContains(t, none.Publish(t.Context(), "asks",
		[]byte("nodes: {a: {exec: {type: process, command: x, secrets: {A: db}}}}")),
		"this server has none for flows")
}

func TestAMissingSecretFailsTheAttemptAndARestoredOneServesTheNext(t *testing.T) {
	e, _ := keepsSecrets(t)
	secrets := t.TempDir()
	require.NoError(t, e.Close())
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(t.TempDir(),
		"x.db"), AllowScripts: true, SecretDir: secrets})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	file := filepath.Join(secrets, "late")
	require.NoError(t, os.WriteFile(file, []byte("value"), 0o600))
	require.NoError(t, e.Publish(t.Context(), "asks", []byte("nodes: {a: {exec: {type: process, command: 'echo 1', secrets: {A: late}}}}")))
	require.NoError(t, os.Remove(file))
	id, err := e.Start(t.Context(), "asks", nil)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, result.Error, `secrets.A: there is no secret "late"`)
	require.NoError(t, os.WriteFile(file, []byte("value"), 0o600))
	require.NoError(t, e.Retry(t.Context(), id))
	result, err = e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, result.Error)
	require.False(t, strings.Contains(string(result.Value), "value"))
}

// byFiles reveals its secret in the files that report its result.
const byFiles = `
nodes:
  tells: {exec: {type: process, report: object_store, secrets: {PASSWORD: db}, command: 'cd $(dirname "${TASK_SPEC_PATH#file://}"); printf "\"it is %s\"" "$(printf %s "$PASSWORD" | sed s/\"/\\\\\"/g)" > output.json; printf "{\"status\": \"success\"}" > s; mv s status.json'}}
  fails: {exec: {type: process, report: object_store, secrets: {PASSWORD: db}, command: 'cd $(dirname "${TASK_SPEC_PATH#file://}"); printf "{\"status\": \"failed\", \"error\": \"not with %s\"}" "$(printf %s "$PASSWORD" | sed s/\"/\\\\\"/g)" > s; mv s status.json; exit 1'}}
`

func TestASecretIsHiddenInReportedFiles(t *testing.T) {
	secrets, files := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "db"), []byte(hidden), 0o600))
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(files,
		"x.db"), AllowScripts: true, SecretDir: secrets,
		ObjectStore: "file://" + filepath.ToSlash(t.TempDir())})
	require.NoError(t, err)
	require.NoError(t, e.Publish(t.Context(), "files", []byte("mode: dag"+byFiles)))
	id, err := e.Start(t.Context(), "files", nil)
	require.NoError(t, err)
	result, err := e.Wait(t.Context(), id)
	require.NoError(t, err)
	require.Contains(t, result.Error, "not with ***")
	page, err := e.Runs(t.Context(), id, troupe.Paging{})
	require.NoError(t, err)
	text, err := json.Marshal(page)
	require.NoError(t, err)
	require.Contains(t, string(text), `"it is ***"`)
	require.NoError(t, e.Close())
	requireInNoFile(t, files)
}

func TestAProgramGetsItsVariables(t *testing.T) {
	e, _ := keepsSecrets(t)
	result := runs(t, e, `
nodes:
  count: {exec: {type: process, command: 'echo "{\"rows\": 3}"'}}
  tell:
    depends_on: [count]
    exec: {type: process, command: 'echo "[\"$DAY\", $ROWS]"', env: {DAY: "${params.day}", ROWS: "${deps.count.rows}"}}
`, map[string]any{"day": "monday"})
	require.JSONEq(t, `{"tell": ["monday", 3]}`, string(result.Value), result.Error)
}

func TestPollsOfExternalJobsUseASecretThatStaysHidden(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("X-Token")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"error": %q}`, "not with "+r.Header.Get("X-Token"))
	}))
	t.Cleanup(server.Close)
	files, secrets := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(secrets, "api"), []byte(hidden+"\n"), 0o600))
	e, err := troupe.Open(t.Context(), troupe.Config{Store: "sqlite:" + filepath.Join(files, "x.db"), SecretDir: secrets,
		PollNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	troupe.Handle(e, "begin", func(context.Context, json.RawMessage) (map[string]any, error) {
		return map[string]any{"deferred": []any{map[string]any{"url": server.URL, "job_id": "j",
			"headers": map[string]any{"X-Token": map[string]any{"secret": "api"}}}}}, nil
	})
	result := runs(t, e, defers, nil)
	require.Equal(t, hidden, <-asked)
	require.Contains(t, result.Error, "status 403: not with ***")
	require.NoError(t, e.Close())
	requireInNoFile(t, files)
}
