package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

func TestAHookIsSetShownAndDeleted(t *testing.T) {
	url := startServe(t)
	hook := func(args ...string) result {
		return call(t, append(append([]string{"hook"}, args...), "--server", url)...)
	}
	require.Zero(t, call(t, "flow", "apply",
		write(t, "order.yaml", "start: x\nnodes:\n  x: {kind: choice, default_action: done}\n"),
		"--server", url).code)

	set := told[wire.HookResult](t, "hook", "set", "orders", "--flow", "order", "--map", "id=body.id",
		"--map", "via='hook; <and> more'", "--label", "by=hook", "--key", "body.id", "--server", url)
	require.True(t, set.Created)
	require.JSONEq(t, `{"id": "body.id", "via": "'hook; <and> more'"}`, string(set.Params))
	require.Equal(t, map[string]string{"by": "hook"}, set.Labels)

	c, err := client.New(url, client.Options{})
	require.NoError(t, err)
	defer c.Close()
	done, err := c.Deliver(t.Context(), "orders", set.Secret, client.Delivery{Body: []byte(`{"id": 7}`)})
	require.NoError(t, err)
	require.True(t, done.Created)

	got := hook("set", "orders", "--disable")
	require.Contains(t, got.stdout, "<and>", "it is shown as it was written")
	require.Zero(t, got.code, got.stderr)
	require.Contains(t, got.stdout, "disabled")
	require.Contains(t, got.stdout, "body.id", "what is not said stays")
	require.NotContains(t, got.stdout+got.stderr, "whsec_")
	got = hook("set", "orders", "--enable", "--new-secret", "--old-secret-ttl", "1d")
	require.Contains(t, got.stdout, "whsec_")
	require.Contains(t, got.stdout, "Old secret valid until:")
	for _, secret := range []string{set.Secret, strings.TrimSpace(got.stdout[strings.Index(got.stdout, "whsec_"):])} {
		_, err = c.Deliver(t.Context(), "orders", secret, client.Delivery{Body: []byte(`{"id": 8}`)})
		require.NoError(t, err)
	}

	list := hook("list")
	require.Contains(t, list.stdout, "starts order")
	require.NotContains(t, list.stdout+hook("show", "orders").stdout, "whsec_")
	require.Equal(t, "orders deleted\n", hook("delete", "orders").stdout)
	require.Equal(t, 1, hook("show", "orders").code)
}

func TestAHookIsReadFromAFileAndItsSecretFromAnother(t *testing.T) {
	url := startServe(t)
	file := write(t, "paid.yaml", "signal: paid\ntask: body.task\nvalue: {amount: body.amount, "+
		"fixed: 12345678901234567890123}\nscheme: github\n")
	secret := write(t, "secret", "a-secret-of-the-operator\n")
	set := told[wire.HookResult](t, "hook", "set", "paid", file, "--secret-file", secret, "--server", url)
	require.Empty(t, set.Secret)
	require.JSONEq(t, `{"amount": "body.amount", "fixed": 12345678901234567890123}`, string(set.Value))
	require.Contains(t, string(set.Value), "12345678901234567890123", "all its digits")
	set.Value = nil
	require.Equal(t, wire.HookSpec{Signal: "paid", Task: "body.task", Scheme: "github"}, set.HookSpec)
	for _, args := range [][]string{
		{"set", "paid", file, "--flow", "x"},
		{"set", "paid", "--params", "body", "--map", "a=body"},
		{"set", "paid", "--disable", "--enable"},
		{"set", "paid", "--secret-file", write(t, "empty", "\n")},
	} {
		require.Equal(t, 2, call(t, append(append([]string{"hook"}, args...), "--server", url)...).code, args)
	}
	wrong := call(t, "hook", "set", "paid", write(t, "wrong.yaml", "signal: paid\ntask: body.(\n"), "--server", url)
	require.Equal(t, 1, wrong.code)
	require.Contains(t, wrong.stderr, "body.task")
	unknown := call(t, "hook", "set", "paid", write(t, "unknown.yaml", "signl: paid\n"), "--server", url)
	require.Contains(t, unknown.stderr, `unknown field "signl"`)
}

// The commands of docs/how-to/hooks.md are run.
func TestTheDeliveriesOfTheDocumentationAreTaken(t *testing.T) {
	url := startServe(t)
	require.Zero(t, call(t, "flow", "apply",
		write(t, "order.yaml", "start: x\nnodes:\n  x: {kind: choice, default_action: done}\n"),
		"--server", url).code)
	text, err := os.ReadFile(filepath.Join(repository, "docs", "how-to", "hooks.md"))
	require.NoError(t, err)
	deliver := func(shell []string, block, secret string) string {
		cmd := exec.Command(shell[0], append(shell[1:], block)...)
		cmd.Env = append(os.Environ(), "SECRET="+secret, "TROUPE_SERVER="+url)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block, out)
		return string(out)
	}
	block := func(language, has string) string {
		for _, found := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(found[1], has) {
				return found[1]
			}
		}
		require.Fail(t, "there is no such block", "%s with %s", language, has)
		return ""
	}
	require.Zero(t, call(t, "hook", "set", "orders", "--flow", "order", "--secret-file",
		write(t, "secret", "a-secret-of-the-operator"), "--server", url).code)
	require.Contains(t, deliver([]string{"bash", "-euo", "pipefail", "-c"}, block("sh", "openssl"),
		"a-secret-of-the-operator"), `"created":true`)
	made := told[wire.HookResult](t, "hook", "set", "orders", "--new-secret", "--server", url)
	deliver([]string{"python3", "-c"}, block("python", "hmac"), made.Secret)
	tasks := told[wire.Page[wire.TaskSummary]](t, "task", "list", "--flow", "order", "--server", url)
	require.Len(t, tasks.Items, 2)
	files := regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, files)
	for i, file := range files {
		got := call(t, "hook", "set", "documented-"+strconv.Itoa(i), write(t, "hook.yaml", file[1]), "--server", url)
		require.Zero(t, got.code, "%s\n%s", file[1], got.stderr)
	}
}
