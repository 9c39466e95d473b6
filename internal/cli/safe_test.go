package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/cli/console"
)

// nasty would clear a screen, run backwards, and end with a line that looks like our output.
const nasty = "a\x1b[2J\u202e\u2066b\u009b31m\r\u2028\U000E0041c\nok.yaml: valid"

// requireSafe fails if a text could control a terminal.
func requireSafe(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		require.False(t, r != '\n' && r != '\t' && r != utf8.RuneError && console.SanitizeText(string(r)) != string(r), "%q in %q", r, text)
	}
}

func TestADisplayNeutralizesControlCharacters(t *testing.T) {
	var b bytes.Buffer
	n, err := fmt.Fprint(console.NewDisplay(&b), nasty, "\x9b", "\ttab")
	require.NoError(t, err)
	require.Equal(t, len(nasty)+5, n)
	require.Equal(t, "a [2J\ufffd\ufffdb 31m \ufffd\ufffdc\nok.yaml: valid\ufffd\ttab", b.String())
	require.Equal(t, "a [2J\ufffd\ufffdb 31m \ufffd\ufffdc ok.yaml: valid", console.SanitizeText(nasty))
	require.Equal(t, "größe 👩‍🔬 ✓", console.SanitizeText("größe 👩‍🔬 ✓"))
}

func TestJSONIsExactAndSafe(t *testing.T) {
	var b bytes.Buffer
	raw := json.RawMessage(`{"b":1.00,"a":"` + "\u202e\u009b\x7f\U000E0041" + `<"}`)
	require.NoError(t, console.PrintJSON(console.NewDisplay(&b), map[string]any{"text": nasty, "raw": raw}))
	requireSafe(t, b.String())
	var back struct {
		Text string
		Raw  json.RawMessage
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, nasty, back.Text)
	require.Contains(t, string(back.Raw), `"b": 1.00`)
	require.JSONEq(t, string(raw), string(back.Raw))
}

// nastyYAML returns a definition with the text nasty in every place that allows it.
func nastyYAML() string {
	return strings.NewReplacer("TEXT", strconv.QuoteToASCII(nasty), "KEY", strconv.QuoteToASCII("k\u202e\u2066\u2028")).Replace(`
name: TEXT
description: TEXT
start: KEY
result: out
nodes:
  KEY: {kind: wait_event, params: {signal_key: sign, note: TEXT}, post: {output_key: out}}
  choose:
    kind: choice
    choice_cases: [{action: KEY, expr: {eq: [$params.x, TEXT]}}]
edges: [{from: KEY, action: default, to: choose}]
`)
}

func TestTextOfADefinitionCannotControlATerminal(t *testing.T) {
	at := []string{"--server", startServe(t)}
	cmd := func(args ...string) result { return call(t, append(args, at...)...) }
	path := write(t, "odd.yaml", nastyYAML())
	require.Equal(t, 0, cmd("flow", "apply", path).code, cmd("flow", "apply", path).stderr)
	started := cmd("task", "start", "odd")
	require.Equal(t, 0, started.code, started.stderr)
	id := strings.TrimSpace(started.stdout)
	for _, args := range [][]string{
		{"flow", "list"}, {"flow", "show", "odd"}, {"flow", "show", "odd", "--plan"}, {"flow", "show", "odd", "--format", "mermaid"},
		{"flow", "show", "odd", "--format", "graphviz"}, {"flow", "show", "odd", "--format", "json"}, {"flow", "show", "odd", "-o", "json"},
		{"task", "list"}, {"task", "show", id}, {"task", "history", id}, {"task", "signal", id, "sign", strconv.Quote(nasty)},
		{"task", "show", id}, {"task", "history", id, "--runs"}, {"task", "watch", id}, {"task", "show", id, "-o", "json"},
	} {
		got := cmd(args...)
		requireSafe(t, got.stdout)
		requireSafe(t, got.stderr)
		require.NotContains(t, got.stdout+got.stderr, "\nok.yaml", args)
	}
}

func TestAProblemIsOneLine(t *testing.T) {
	at := []string{"--server", startServe(t)}
	path := write(t, "bad.yaml", strings.ReplaceAll(
		"start: Q\nQ: Q\nnodes:\n  Q: {kind: Q, exec_type: Q, Q: Q}\n  b: {func: Q}\n", "Q",
		strconv.QuoteToASCII(nasty)))
	for _, args := range [][]string{{"flow", "validate", path}, {"flow", "apply", path}} {
		got := call(t, append(args, at...)...)
		require.Equal(t, 1, got.code)
		requireSafe(t, got.stdout)
		requireSafe(t, got.stderr)
		lines := strings.Split(strings.TrimRight(got.stdout+got.stderr, "\n"), "\n")
		for _, line := range lines {
			require.True(t, strings.HasPrefix(line, path), line)
		}
	}
}

func TestAServersErrorIsShownAsItsOwn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(map[string]any{"status": 409, "title": nasty, "message": nasty, "field": nasty, "hint": nasty,
			"errors": []any{map[string]any{"message": nasty, "field": nasty}, map[string]any{"message": nasty, "field": nasty}}})
	}))
	t.Cleanup(server.Close)
	for _, args := range [][]string{{"flow", "list"}, {"task", "show", "x"}, {"task", "start", "x"}} {
		got := call(t, append(args, "--server", server.URL)...)
		require.Equal(t, 1, got.code)
		requireSafe(t, got.stderr)
		require.NotContains(t, got.stderr, "\nok.yaml")
	}
}
