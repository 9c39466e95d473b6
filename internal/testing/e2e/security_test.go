package e2e

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/internal/testing/certtest"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/process"
	"github.com/troupe-engine/troupe/persistence"
)

// castle is a cluster of two members with TLS, client certificates, tokens, a gossip key and a
// secret.
type castle struct {
	t      *testing.T
	dir    string
	dsn    string
	store  persistence.Store
	ca     *certtest.Authority
	pair   certtest.Pair
	gossip string   // gossip address of the first member
	bases  []string // URLs of all members
	files  keys     // shared by all members
}

// keys are the files of the shared keys.
type keys struct{ gossip, secret string }

const castleToken = "open sesame"

func newCastle(t *testing.T) *castle {
	c := &castle{t: t, dir: t.TempDir(), dsn: pgtest.DSN(t), ca: certtest.New(t), gossip: freeAddress(t)}
	c.pair = c.ca.Issue(t)
	store, err := troupe.OpenStore(t.Context(), c.dsn, "")
	require.NoError(t, err)
	c.store = store
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	c.files = keys{c.write("gossip-key", key()), c.write("cluster-secret", key())}
	c.write("token", castleToken)
	for _, name := range []string{"first", "second"} {
		address := freeAddress(t)
		gossip := cmp.Or(map[string]string{"first": c.gossip}[name], freeAddress(t))
		c.bases = append(c.bases, "https://"+address)
		c.start(name, "--store", c.dsn, "--listen", address, "--gossip", gossip, "--cluster", "castle",
			"--gossip-key-file", c.files.gossip, "--cluster-secret-file", c.files.secret)
	}
	c.settle()
	return c
}

// key returns a new key.
func key() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

func (c *castle) write(name, content string) string {
	path := filepath.Join(c.dir, name)
	require.NoError(c.t, os.WriteFile(path, []byte(content+"\n"), 0o600))
	return path
}

// start starts a member whose log holds only warnings and errors.
func (c *castle) start(name string, args ...string) *process.Process {
	c.t.Helper()
	cmd := exec.Command(binary, append([]string{"serve", "--name", name, "--log-level", "warn",
		"--token-file", filepath.Join(c.dir, "token"),
		"--tls-cert", c.pair.Cert, "--tls-key", c.pair.Key, "--tls-client-ca", c.ca.File, "--ca", c.ca.File}, args...)...)
	p, err := process.Start(c.dir, name, cmd)
	require.NoError(c.t, err)
	c.t.Cleanup(func() {
		p.Kill()
		if c.t.Failed() {
			c.t.Logf("%s said:\n%s", name, p.Said())
		}
	})
	return p
}

// settle waits until the two members own half of the shards each.
func (c *castle) settle() {
	c.t.Helper()
	visitor := c.visitor(c.pair)
	require.Eventually(c.t, func() bool {
		status, _, err := c.ask(visitor, "GET", c.bases[1]+"/readyz", "", nil)
		if err != nil || status != http.StatusOK {
			return false
		}
		cluster, err := c.store.Cluster(c.t.Context())
		if err != nil {
			return false
		}
		owned := map[string]int{}
		for _, owner := range cluster.Owners {
			owned[owner]++
		}
		most := 0
		for _, n := range owned {
			most = max(most, n)
		}
		return owned[""] == 0 && len(owned) == 2 && most <= (len(cluster.Owners)+1)/2
	}, patience, 50*time.Millisecond)
}

// state is the data that unauthorized peers must not change.
type state struct {
	Generation int64
	Members    []string
	Owners     []string
	Journal    []persistence.Row
	Task       *persistence.TaskRow
	Waiting    []persistence.QueueRow
	Tasks      int
	Flows      int
	Workers    []string
}

// look reads the state from the store.
func (c *castle) look(tasks ...string) (s state) {
	c.t.Helper()
	ctx, store := c.t.Context(), c.store
	cluster, err := store.Cluster(ctx)
	require.NoError(c.t, err)
	s.Generation, s.Owners = cluster.Generation, cluster.Owners
	for _, m := range cluster.Members {
		s.Members = append(s.Members, m.Incarnation)
	}
	for _, task := range tasks {
		s.Task, err = store.Task(ctx, task)
		require.NoError(c.t, err)
		s.Journal, err = store.Rows(ctx, task, 0, persistence.Part{Rows: 1000, Bytes: 1 << 20})
		require.NoError(c.t, err)
	}
	s.Waiting, err = store.QueueRows(ctx, nil, 0, "", 1000)
	require.NoError(c.t, err)
	s.Tasks, err = store.CountTasks(ctx, persistence.TaskFilter{})
	require.NoError(c.t, err)
	_, s.Flows, err = store.ListFlows(ctx, 0, 0)
	require.NoError(c.t, err)
	workers, err := store.ListWorkers(ctx)
	require.NoError(c.t, err)
	for _, w := range workers {
		s.Workers = append(s.Workers, w.ID)
	}
	return s
}

// visitor returns a client that trusts the castle's authority and presents a certificate.
func (c *castle) visitor(pair certtest.Pair) *http.Client {
	c.t.Helper()
	text, err := os.ReadFile(c.ca.File)
	require.NoError(c.t, err)
	cfg := &tls.Config{RootCAs: x509.NewCertPool()}
	require.True(c.t, cfg.RootCAs.AppendCertsFromPEM(text))
	own, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	require.NoError(c.t, err)
	cfg.Certificates = []tls.Certificate{own}
	transport := &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// ask sends a request with a token; "" for none.
func (c *castle) ask(as *http.Client, method, url, token string, body any) (status int, answer string, err error) {
	b, err := json.Marshal(body)
	require.NoError(c.t, err)
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(b))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := as.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// said returns how often a log contains a text.
func (c *castle) said(name, what string) int {
	text, err := os.ReadFile(filepath.Join(c.dir, name+".log"))
	require.NoError(c.t, err)
	return strings.Count(string(text), what)
}

// hears waits until a log contains a text, which must occur once.
func (c *castle) hears(t *testing.T, name, what string) {
	t.Helper()
	require.Eventually(t, func() bool { return c.said(name, what) > 0 }, patience, 10*time.Millisecond, "%s has not said %q", name, what)
	require.Equal(t, 1, c.said(name, what), "%s has said it more often: %q", name, what)
}

// claimed starts a task and claims its only job.
func (c *castle) claimed(friend *http.Client) (task, job, token string) {
	c.t.Helper()
	call := func(method, path string, body any) (answer map[string]any) {
		status, text, err := c.ask(friend, method, c.bases[0]+path, castleToken, body)
		require.NoError(c.t, err)
		require.Less(c.t, status, 300, text)
		require.NoError(c.t, json.Unmarshal([]byte(text), &answer))
		return answer
	}
	call("PUT", "/v1/flows/guarded", map[string]any{"nodes": map[string]any{"x": map[string]any{"service": "s", "route": "queue"}}})
	task = call("POST", "/v1/tasks", map[string]any{"flow": "guarded"})["id"].(string)
	claim := call("POST", "/queue/poll", map[string]any{"worker_id": "friend", "services": []string{"s"}, "wait_ms": 10_000})
	return task, claim["id"].(string), claim["token"].(string)
}

const deliver = "/troupe.cluster.v1.Members/Deliver"

// Each unauthorized action is tried several times. It is refused each time, logged once, and
// changes nothing.
func TestUnauthorizedPeersAreRefusedAndLoggedOnce(t *testing.T) {
	t.Parallel()
	c := newCastle(t)
	friend, first := c.visitor(c.pair), c.bases[0]
	task, job, token := c.claimed(friend)
	stranger := func(name, store, cluster string, files keys) *process.Process {
		return c.start(name, "--store", store, "--listen", freeAddress(t), "--gossip",
			freeAddress(t), "--join", c.gossip, "--cluster", cluster,
			"--gossip-key-file", files.gossip, "--cluster-secret-file", files.secret)
	}
	refused := func(t *testing.T, as *http.Client, status int, why, url, token string, body any) {
		t.Helper()
		for range 3 {
			got, text, err := c.ask(as, "POST", url, token, body)
			require.NoError(t, err)
			require.Equal(t, status, got, text)
			require.Contains(t, text, why)
		}
	}
	for _, tt := range []struct {
		name   string
		attack func(t *testing.T)
		logged string
	}{
		{"a wrong gossip key", func(t *testing.T) {
			p := stranger("wrong-key", pgtest.DSN(t), "castle", keys{c.write("other-key", key()), c.files.secret})
			c.hears(t, "wrong-key", "joining gossip failed")
			p.Kill()
			p = stranger("wrong-key-again", pgtest.DSN(t), "castle", keys{c.write("other-key", key()), c.files.secret})
			c.hears(t, "wrong-key-again", "joining gossip failed")
			p.Kill()
		}, "a key that is not in the ring"},
		{"gossip of another cluster", func(t *testing.T) {
			p := stranger("other-cluster", pgtest.DSN(t), "other", c.files)
			c.hears(t, "other-cluster", "joining gossip failed")
			p.Kill()
		}, "it is of another cluster, or names none"},
		{"another cluster on the same store", func(t *testing.T) {
			p := stranger("intruder", c.dsn, "other", c.files)
			require.Error(t, p.Wait(patience))
			c.hears(t, "intruder", "the store belongs to another cluster")
		}, ""},
		{"another secret on the same store", func(t *testing.T) {
			p := stranger("secretive", c.dsn, "castle", keys{c.files.gossip, c.write("other-secret", key())})
			require.Error(t, p.Wait(patience))
			c.hears(t, "secretive", "its members have another secret")
		}, ""},
		{"no secret", func(t *testing.T) {
			refused(t, friend, 401, "the secret of the cluster is wrong or missing", first+deliver, castleToken, nil)
		}, "the secret of the cluster is wrong or missing"},
		{"no token", func(t *testing.T) {
			refused(t, friend, 401, "a bearer token is needed", first+"/v1/tasks", "", map[string]any{"flow": "guarded"})
		}, "a bearer token is needed"},
		{"a wrong token", func(t *testing.T) {
			refused(t, friend, 401, "the bearer token is wrong", first+"/v1/tasks", "guessed", map[string]any{"flow": "guarded"})
			refused(t, friend, 401, "the bearer token is wrong", first+"/tasks/signal", "guessed",
				map[string]any{"task_id": task, "key": "k", "value": 1})
		}, "the bearer token is wrong"},
		{"a plain connection to a port with TLS", func(t *testing.T) {
			refused(t, http.DefaultClient, 400, "HTTP request to an HTTPS server",
				strings.Replace(first, "https", "http", 1)+"/v1/tasks", castleToken, nil)
		}, "client sent an HTTP request to an HTTPS server"},
		{"an expired certificate", func(t *testing.T) {
			expired := c.visitor(c.ca.IssueUntil(t, time.Now().Add(-time.Hour)))
			for range 3 {
				_, _, err := c.ask(expired, "POST", first+"/v1/tasks", castleToken, map[string]any{"flow": "guarded"})
				require.Error(t, err)
			}
		}, "certificate has expired"},
		{"a wrong job token", func(t *testing.T) {
			for _, base := range c.bases {
				refused(t, friend, 409, "the token is not that of the newest claim", base+"/queue/complete", castleToken,
					map[string]any{"queue_id": job, "result": "mine", "token": "guessed"})
			}
		}, "the token is not that of the newest claim"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := c.look(task)
			tt.attack(t)
			if tt.logged != "" {
				c.hears(t, "first", tt.logged)
			}
			require.Equal(t, before, c.look(task), "nothing changed")
		})
	}
	for _, name := range []string{"first", "second"} {
		require.Zero(t, c.said(name, "level=ERROR"))
		for _, secret := range []string{castleToken, "guessed"} {
			require.Zero(t, c.said(name, secret), "no secret is in a log")
		}
	}
	status, text, err := c.ask(friend, "POST", c.bases[1]+"/queue/complete", castleToken,
		map[string]any{"queue_id": job, "result": 1, "token": token})
	require.NoError(t, err)
	require.Equal(t, 200, status, text)
	require.Eventually(t, func() bool { return c.look(task).Task.Status == "completed" }, patience,
		20*time.Millisecond, "who has the tokens gets on")
}
