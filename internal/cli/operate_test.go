package cli

import (
	"encoding/json"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// alongside starts members on one store and returns their addresses.
func alongside(t *testing.T, dsn string, names ...string) (servers []string) {
	for _, name := range names {
		first, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store", dsn, "--name", name, "--log-level", "error")
		servers = append(servers, strings.Fields(strings.TrimPrefix(first, "Troupe serves "))[0])
	}
	return servers
}

// told returns the JSON output of a command, decoded.
func told[T any](t *testing.T, args ...string) (answer T) {
	t.Helper()
	got := call(t, append(args, "--output", "json")...)
	require.Zero(t, got.code, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &answer), got.stdout)
	return answer
}

// shared waits until the given number of members live and each has its share of the shards.
func shared(t *testing.T, server string, members int) wire.Cluster {
	t.Helper()
	var c wire.Cluster
	require.Eventually(t, func() bool {
		c = told[wire.Cluster](t, "cluster", "members", "--server", server)
		return len(c.Items) == members && !slices.ContainsFunc(c.Items, func(m wire.Member) bool {
			return m.State != "alive" || m.Shards < 1024/members-1
		})
	}, 30*time.Second, 50*time.Millisecond, "%+v", &c)
	return c
}

func TestAClusterIsLookedAtAndAMemberDrained(t *testing.T) {
	servers := alongside(t, pgtest.DSN(t), "a", "b", "c")
	all := shared(t, servers[2], 3)
	require.Equal(t, "troupe", all.Name)
	for i, m := range all.Items {
		require.Equal(t, []any{"alive", servers[i], i == 2, troupe.Version()}, []any{m.State, m.URL, m.Current, m.Version})
		require.Positive(t, m.LeaseMS)
		require.LessOrEqual(t, m.LeaseMS, int64(2000))
		_, _, err := net.SplitHostPort(m.Gossip)
		require.NoError(t, err)
	}
	waits := write(t, "waits.yaml", "start: w\nnodes:\n  w: {kind: wait_event, params: {signal_key: $shared.go}}\n")
	require.Zero(t, call(t, "flow", "apply", waits, "--server", servers[0]).code)
	task := strings.TrimSpace(call(t, "task", "start", "waits", "--server", servers[0]).stdout)

	owner := told[wire.Shards](t, "cluster", "shards", "--server", servers[1], "--task", task)
	require.Len(t, owner.Items, 1)
	require.Equal(t, 1, owner.Items[0].ActiveTasks+owner.Items[0].IdleTasks)
	name := owner.Items[0].Member
	shown := call(t, "cluster", "shards", "--server", servers[1], "--task", task)
	require.Regexp(t, `Member: +`+name, shown.stdout)

	drained := call(t, "cluster", "drain", name, "--wait", "--server", servers[0])
	require.Equal(t, name+" is drained\n", drained.stdout, drained.stderr)
	owner = told[wire.Shards](t, "cluster", "shards", "--server", servers[1], "--task", task)
	require.NotEqual(t, name, owner.Items[0].Member)
	require.NotEmpty(t, owner.Moves)
	table := call(t, "cluster", "members", "--server", servers[0]).stdout
	require.Regexp(t, name+` +draining +[0-9.]+m?s +0 +0 +0 `, table)
	for _, server := range servers { // each member answers for the others
		signaled := call(t, "task", "signal", task, "other", "1", "--server", server)
		require.Zero(t, signaled.code, signaled.stderr)
	}
	again := call(t, "cluster", "drain", name, "--server", servers[1])
	require.Zero(t, again.code, again.stderr)

	undone := call(t, "cluster", "drain", name, "--undo", "--server", servers[1])
	require.Equal(t, name+" takes tasks again\n", undone.stdout, undone.stderr)
	shared(t, servers[0], 3)
	moved := call(t, "cluster", "shards", "--server", servers[0]).stdout
	require.Regexp(t, `MEMBER +SHARDS +ACTIVE +RESTING`, moved)
	require.Regexp(t, `MOVED +SHARDS +FROM +TO`, moved)
	moves := told[wire.Shards](t, "cluster", "shards", "--server", servers[0]).Moves
	require.Nil(t, moves[0].From, "the first member had all shards, and nobody before it")
	for _, server := range servers[1:] {
		require.Equal(t, moves, told[wire.Shards](t, "cluster", "shards", "--server", server).Moves, "also those of before it joined")
	}

	stranger := call(t, "cluster", "drain", "d", "--server", servers[0])
	require.Equal(t, 1, stranger.code)
	require.Contains(t, stranger.stderr, `there is no live member "d" in this cluster`)
}

func TestTheLastMemberThatTakesTasksIsNotDrained(t *testing.T) {
	servers := alongside(t, pgtest.DSN(t), "twin", "twin")
	all := shared(t, servers[0], 2)
	both := call(t, "cluster", "drain", "twin", "--server", servers[0])
	require.Equal(t, 1, both.code)
	require.Contains(t, both.stderr, "several members are called twin")
	require.Contains(t, both.stderr, all.Items[1].Incarnation)

	require.Zero(t, call(t, "cluster", "drain", all.Items[1].Incarnation, "--wait", "--server", servers[1]).code)
	last := call(t, "cluster", "drain", all.Items[0].Incarnation, "--server", servers[1])
	require.Equal(t, 1, last.code)
	require.Contains(t, last.stderr, "no other member could take the shards of twin: all other members drain or are gone")
}

func TestAMemberOnSQLiteIsAClusterOfOne(t *testing.T) {
	first, _ := background(t, "serve", "--listen", "127.0.0.1:0", "--store",
		"sqlite:"+t.TempDir()+"/troupe.db", "--name", "only", "--log-level", "error")
	server := strings.Fields(strings.TrimPrefix(first, "Troupe serves "))[0]
	m := shared(t, server, 1).Items[0]
	require.Equal(t, []any{"only", "alive", "", true}, []any{m.Name, m.State, m.URL, m.Current})
	shards := call(t, "cluster", "shards", "--server", server)
	require.Contains(t, shards.stdout, "No shard moved in the last ten minutes.")
	drained := call(t, "cluster", "drain", "only", "--server", server)
	require.Equal(t, 1, drained.code)
	require.Contains(t, drained.stderr, "a store of SQLite has room for one member; several share a store of PostgreSQL")
}

func TestCommandsGoOnAtTheNextMember(t *testing.T) {
	// a free port would not do, because the server below may get it
	const nobody = "http://127.0.0.1:1"
	server := alongside(t, pgtest.DSN(t), "a")[0]
	both := nobody + "/api, " + server + "/api/"
	require.Equal(t, "alive\n", call(t, "health", "--live", "--server", both).stdout)
	flow := write(t, "upper.yaml", "start: u\nnodes:\n  u: {exec_type: local_func, func: upper, prep: {input_key: $params.text}}\n")
	done := call(t, "flow", "run", flow, "-p", "text=a", "--server", both)
	require.Zero(t, done.code, done.stderr)
	none := call(t, "task", "list", "--server", nobody+","+nobody)
	require.Equal(t, 1, none.code)
	require.Contains(t, none.stderr, "no server answers at "+nobody)
}
