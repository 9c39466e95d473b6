package program_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/program"
	"github.com/troupe-engine/troupe/internal/secrets"
)

// hidden is a secret that must not appear.
const hidden = "hunter2-and-more"

// withSecrets returns a runner with a secret named db.
func withSecrets(t *testing.T) (*program.Runner, string) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db"), []byte(hidden+"\n"), 0o600))
	known, err := secrets.Open(secrets.Options{Dir: dir})
	require.NoError(t, err)
	return program.New(program.Options{Secrets: known}), dir
}

var asked = map[string]flow.Secret{"PASSWORD": {Secret: "db"}}

func TestAProgramFindsItsSecrets(t *testing.T) {
	r, dir := withSecrets(t)
	res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess,
		Program: &flow.Program{Command: `test "$PASSWORD" = ` + hidden + ` && test "$OWN" = 1`,
			Env: map[string]string{"OWN": "1"}, Secrets: asked}})
	require.Empty(t, res.Error)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "db"), []byte("replaced"), 0o600))
	res = r.Run(t.Context(), program.Job{Type: flow.ExecProcess,
		Program: &flow.Program{Command: `test "$PASSWORD" = replaced`, Secrets: asked}})
	require.Empty(t, res.Error, "each attempt reads it anew")

	res = r.Run(t.Context(), program.Job{Type: flow.ExecProcess,
		Program: &flow.Program{Command: `test "$(cat "$FILE")" = replaced && test $(stat -c %a ` +
			`"$FILE") = 600 && echo "\"$FILE\""`,
			Secrets: map[string]flow.Secret{"FILE": {Secret: "db", File: "/etc/db"}}}})
	require.Empty(t, res.Error)
	require.NoFileExists(t, string(res.Output[1:len(res.Output)-1]))
}

func TestAProgramWithoutItsSecretIsNotStarted(t *testing.T) {
	r, dir := withSecrets(t)
	begun := filepath.Join(t.TempDir(), "begun")
	for _, name := range []string{"none", "../db"} {
		res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess,
			Program: &flow.Program{Args: []string{"touch", begun},
				Secrets: map[string]flow.Secret{"A": {Secret: name}}}})
		require.ErrorContains(t, errorOf(res), "secrets.A: there is no secret")
		require.False(t, res.Fatal, "it may be there the next time")
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "db"), nil, 0o600))
	res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Program: &flow.Program{Args: []string{"touch", begun}, Secrets: asked}})
	require.Equal(t, `secrets.PASSWORD: the secret "db" is empty`, res.Error)
	require.NoFileExists(t, begun)
}

type failed string

func (f failed) Error() string { return string(f) }

func errorOf(res program.Result) error { return failed(res.Error) }

// Secrets are hidden in every kind of output.
func TestSecretsAreHiddenInOutput(t *testing.T) {
	r, _ := withSecrets(t)
	for name, tt := range map[string]struct{ command, output, failure string }{
		"an output":   {`echo "ORK_OUTPUT:{\"a\":\"x $PASSWORD\"}"`, `{"a":"x ***"}`, ""},
		"all of it":   {`echo "[\"$PASSWORD\"]"`, `["***"]`, ""},
		"a key of it": {`echo "{\"$PASSWORD\":1}"`, `{"***":1}`, ""},
		"in base64": {`printf '"%s"' "$(printf 'me:%s' "$PASSWORD" | base64)"`,
			`"bWU6***Q=="`, ""},
		"a line on stderr": {`echo "no $PASSWORD here" >&2; exit 1`, "", "exit status 1: no *** here"},
		"an error": {`echo "ORK_ERROR:{\"message\":\"m ` +
			`$PASSWORD\",\"details\":{\"d\":\"$PASSWORD\"}}"; exit 1`, "", "m ***"},
		"at the end of a line": {`printf '%0495d%s' 1 "$PASSWORD" >&2; exit 1`, "", ""},
		"letter by letter": {`for c in h u n t e r 2 - a n d - m o r e; do printf $c; ` +
			`printf $c >&2; sleep 0.01; done; exit 3`, "", "exit status 3: ***"},
		"on both, without ends": {`printf %s "$PASSWORD"; printf %s "$PASSWORD" >&2`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var out, complaints listener
			res := r.Run(t.Context(), program.Job{Type: flow.ExecProcess, Stdout: &out,
				Stderr: &complaints, Program: &flow.Program{Command: tt.command, Secrets: asked}})
			require.Equal(t, tt.output, string(res.Output))
			if tt.failure != "" {
				require.Equal(t, tt.failure, res.Error)
			}
			all := string(res.Output) + string(res.Details) + res.Error + out.String() + complaints.String()
			for _, form := range []string{hidden, hidden[:10], base64.StdEncoding.EncodeToString([]byte(hidden))[:12]} {
				require.NotContains(t, all, form)
			}
		})
	}
}

func TestPythonFunctionGetsSecretsAndTheyAreHidden(t *testing.T) {
	r, _ := withSecrets(t)
	file := filepath.Join(t.TempDir(), "f.py")
	write(t, file, "import os\ndef main():\n    print('log', os.environ['PASSWORD'])\n    "+
		"return {'a': os.environ['PASSWORD']}\ndef fails():\n    raise "+
		"ValueError(os.environ['PASSWORD'])\n", 0o600)
	var out listener
	res := r.Run(t.Context(), program.Job{Type: flow.ExecPython, Stdout: &out,
		Program: &flow.Program{File: file, Root: filepath.Dir(file), Secrets: asked}})
	require.Empty(t, res.Error)
	require.JSONEq(t, `{"a":"***"}`, string(res.Output))
	require.Contains(t, out.String(), "log ***")
	require.NotContains(t, out.String(), hidden)
	var complaints listener
	res = r.Run(t.Context(), program.Job{Type: flow.ExecPython, Stderr: &complaints,
		Program: &flow.Program{File: file, Function: "fails", Root: filepath.Dir(file), Secrets: asked}})
	require.Contains(t, res.Error, "***")
	require.NotContains(t, res.Error+string(res.Details)+complaints.String(), hidden)
}
