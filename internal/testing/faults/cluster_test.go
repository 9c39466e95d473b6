package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/ports"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// testCluster is a PostgreSQL server, members on hosts of their own, and workers.
type testCluster struct {
	hosts
	t       *testing.T
	dir     string // folder of the logs
	log     *chronicle
	server  *pgtest.Server // the store
	front   *storeFront    // what leads members to it; nil = they reach it directly
	members []*member
	client  *errands.Client
	world   *errands.World

	visibility time.Duration // maximal silence of pollers about a job
}

// database is the name of the cluster's database.
const database = "troupe"

// newTestCluster prepares a cluster without members and workers.
func newTestCluster(t *testing.T, members int) *testCluster {
	c := newStore(t)
	c.addHosts(members, samePort(c.server.Port()))
	return c
}

// newMovableCluster does the same, with a front that can lead members to other servers.
func newMovableCluster(t *testing.T, members int) *testCluster {
	c := newStore(t)
	var err error
	c.front, err = newStoreFront(members, c.server)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.front.close()) })
	c.addHosts(members, c.front.portFor)
	return c
}

// newStore sets up the store of a cluster.
func newStore(t *testing.T) *testCluster {
	c := &testCluster{t: t, visibility: 5 * time.Second}
	var err error
	c.dir, err = os.MkdirTemp("", "troupe-faults-")
	require.NoError(t, err)
	t.Cleanup(c.clear)
	c.log, err = newChronicle(filepath.Join(c.dir, "faults.log"))
	require.NoError(t, err)
	server, err := pgtest.StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c.server = server
	return c
}

// addHosts sets up hosts, and all else that their members need.
func (c *testCluster) addHosts(members int, storePort portOf) {
	t := c.t
	var err error
	c.hosts, err = newHosts(members, storePort)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.hosts.close()) })
	c.world = errands.NewWorld(t, c.dir, c.site(0).workers)
	c.openStore()
	var bases []string
	for i := range members {
		c.members = append(c.members, &member{testCluster: c, i: i, name: fmt.Sprintf("member-%d", i)})
		bases = append(bases, c.site(i).base())
	}
	c.client = errands.NewClient(bases...)
	c.client.Patient = true
	t.Cleanup(c.client.HTTP.CloseIdleConnections)
	require.NoError(t, os.WriteFile(c.path("gossip.key"), []byte("K2w5bHl0dXJ0bGVzYWxsdGhld2F5ZG93bjEyMzQ1Njc=\n"), 0o600))
	require.NoError(t, os.WriteFile(c.path("secret"), []byte("between members of the cluster alone\n"), 0o600))
}

// openStore makes the store listen where hosts reach it, and creates the database.
func (c *testCluster) openStore() {
	host, _, err := net.SplitHostPort(c.site(0).store)
	require.NoError(c.t, err)
	if c.front == nil && !c.site(0).loopback {
		require.NoError(c.t, c.server.ListenOn(host))
		require.NoError(c.t, c.server.Restart(c.t.Context()))
	}
	conn, err := pgx.Connect(c.t.Context(), c.server.DSN("postgres"))
	require.NoError(c.t, err)
	defer conn.Close(c.t.Context())
	_, err = conn.Exec(c.t.Context(), "CREATE DATABASE "+database)
	require.NoError(c.t, err)
}

func (c *testCluster) path(name string) string { return filepath.Join(c.dir, name) }

// logs is the folder for the output of long tests.
const logs = "../../../logs"

// clear keeps the logs if the test failed. By now all processes have ended.
func (c *testCluster) clear() {
	if c.t.Failed() || os.Getenv("KEEP") != "" {
		to := filepath.Join(logs, "faults", strings.ReplaceAll(c.t.Name(), "/", "-"))
		err := os.RemoveAll(to)
		if err == nil {
			err = os.CopyFS(to, os.DirFS(c.dir))
		}
		c.t.Logf("the log of faults, and what members and workers said, is in %s (%v)", to, err)
	}
	require.NoError(c.t, os.RemoveAll(c.dir))
}

// open starts members and workers and publishes the flows.
func (c *testCluster) open(ctx context.Context) {
	c.log.write("members live on %s", c.kind())
	for _, m := range c.members {
		require.NoError(c.t, m.start())
		c.t.Cleanup(m.end)
	}
	require.NoError(c.t, c.settle(ctx))
	require.NoError(c.t, errands.PublishAll(ctx, c.client))
	for i, name := range everybody {
		c.employ(name, i/2)
	}
	require.NoError(c.t, c.await(ctx, "every worker is known everywhere", c.allKnown))
}

// everybody lists the workers: those of our services by push, pull and attached, and those of the
// command. A number is the member they use first. No worker attaches to the third member at first,
// so its jobs go to others.
var everybody = []string{"push-0", "attached-0", "attached-1", "pull-1", "push-2", "pull-2", "demo-push", "demo-pull"}

// employ starts a worker that knows all members and uses the given one first.
func (c *testCluster) employ(name string, first int) {
	address, err := ports.FreeAddress()
	require.NoError(c.t, err)
	_, port, err := net.SplitHostPort(address)
	require.NoError(c.t, err)
	spec := errands.Worker{ID: name, Server: c.bases(first),
		URL: "http://" + net.JoinHostPort(c.site(0).workers, port), Diary: c.path("diary"),
		Outside: c.world.Outside.Address}
	var cmd *exec.Cmd
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "push":
		spec.Push, spec.Services = true, errands.PushServices
		cmd, err = spec.Command()
	case "attached":
		spec.Attach, spec.Services = true, errands.AttachedServices
		cmd, err = spec.Command()
	case "pull":
		spec.Services = errands.PullServices
		cmd, err = spec.Command()
	default:
		cmd = exec.Command(binary, "worker", "--server", spec.Server, "--id", name,
			"--mode", strings.TrimPrefix(name, "demo-"), "--url", spec.URL, "--delay", "20ms")
	}
	require.NoError(c.t, err)
	cmd.Dir = c.dir
	p, err := process.Start(c.dir, name, cmd)
	require.NoError(c.t, err)
	c.t.Cleanup(p.Kill)
}

// bases returns the addresses of all members, separated by commas, starting with the given one.
func (c *testCluster) bases(first int) string {
	var bases []string
	for i := range c.members {
		bases = append(bases, c.site((first+i)%len(c.members)).base())
	}
	return strings.Join(bases, ",")
}

// allKnown returns an error unless every member knows every worker.
func (c *testCluster) allKnown(ctx context.Context) error {
	for _, m := range c.members {
		var known []struct{ ID string }
		if err := errands.NewClient(m.site().base()).Insist(ctx,
			errands.Request{Method: "GET", Path: "/workers/list"}, &known); err != nil {
			return err
		}
		for _, name := range everybody {
			if !slices.Contains(known, struct{ ID string }{name}) {
				return fmt.Errorf("%s does not know %s: %v", m.name, name, known)
			}
		}
	}
	return nil
}

// patience is the time limit for everything that should happen by itself.
const patience = 60 * time.Second

// settle waits until all members accept work.
func (c *testCluster) settle(ctx context.Context) error {
	return c.await(ctx, "all members are ready", func(context.Context) error {
		var err error
		for _, m := range c.members {
			err = errors.Join(err, m.ready())
		}
		return err
	})
}

// await waits until check returns no error.
func (c *testCluster) await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not true after %v: %s: %w", patience, what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// leave stops all members and workers gracefully.
func (c *testCluster) leave() {
	for _, m := range c.members {
		require.NoError(c.t, m.stop())
	}
}

// probing is a client for readiness checks with a short timeout, because a member may be frozen.
var probing = http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
