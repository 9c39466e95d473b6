package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
)

func TestATokenIsMadeUsedListedAndDeleted(t *testing.T) {
	url := startServe(t, "--token", "root")
	as := func(token string, args ...string) result {
		return call(t, append(args, "--server", url, "--token", token)...)
	}
	made := told[wire.CreatedToken](t, "token", "create", "ada", "--role", "viewer", "--expires", "1d", "--server", url, "--token", "root")
	require.Zero(t, as(made.Secret, "task", "list").code)
	got := as(made.Secret, "task", "start", "order")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.stderr, "this needs the role operator, and the token ada has the role viewer")
	require.Contains(t, as(made.Secret, "token", "list").stderr, "this needs the role admin")

	worker := as("root", "token", "create", "w", "--role", "worker")
	require.Contains(t, worker.stdout, "trp_")
	require.Contains(t, worker.stderr, "not shown again")
	list := as("root", "token", "list")
	require.Regexp(t, `(?m)^ada +viewer +\d`, list.stdout)
	require.Regexp(t, `(?m)^w +worker +never +never`, list.stdout)
	require.NotContains(t, list.stdout, "trp_")
	require.Equal(t, "ada deleted\nw deleted\n", as("root", "token", "delete", "ada", "w").stdout)
	require.Contains(t, as(made.Secret, "task", "list").stderr, "the bearer token is wrong")
}
