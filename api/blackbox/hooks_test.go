package blackbox

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var hookChecks = []check{
	{"a raw signed request starts a task, whichever member gets it again", rawDelivery},
	{"requests that are not signed are refused in one way", rawStrangers},
	{"a delivery signals the task that another one has started", deliveriesByKey},
	{"a delivery is known after a kill", deliveryAfterKill},
}

func TestHooksSQLite(t *testing.T)   { t.Parallel(); runChecks(t, sqliteStore, hookChecks) }
func TestHooksPostgres(t *testing.T) { t.Parallel(); runChecks(t, postgresStore, hookChecks) }
func TestHooksCluster(t *testing.T)  { t.Parallel(); runChecks(t, clusterStore, hookChecks) }

const hookSecret = "secret-of-whoever-delivers"

// v1 returns a client for the routes of /v1.
func (c *client) v1() *client {
	return &client{T: c.T, server: c.server}
}

// hookOf creates a hook and returns its name.
func (c *client) hookOf(settings obj) string {
	c.Helper()
	settings["secret"] = hookSecret
	name := unique("hook")
	status, v := c.v1().call("PUT", "/v1/hooks/"+name, settings)
	require.Equal(c, 201, status, "%v", v)
	return name
}

func (c *client) publishes(definition string) string {
	c.Helper()
	slug := unique("hooked")
	status, v := c.v1().call("PUT", "/v1/flows/"+slug, definition)
	require.Equal(c, 201, status, "%v", v)
	return slug
}

func hookMAC(text string) []byte {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// standardHeaders returns the headers of Standard Webhooks as text.
func standardHeaders(id, body string) string {
	at := fmt.Sprint(time.Now().Unix())
	return "webhook-id: " + id + "\r\nwebhook-timestamp: " + at + "\r\nwebhook-signature: v1," +
		base64.StdEncoding.EncodeToString(hookMAC(id+"."+at+"."+body)) + "\r\nContent-Type: application/json\r\n"
}

// raw sends a request unchanged over a new connection to the next member.
func (c *client) raw(hook, headers, body string) (int, obj) {
	c.Helper()
	host := strings.TrimPrefix(c.url(), "http://")
	conn, err := net.DialTimeout("tcp", host, deadline)
	require.NoError(c, err)
	defer conn.Close()
	require.NoError(c, conn.SetDeadline(time.Now().Add(deadline)))
	_, err = fmt.Fprintf(conn, "POST /v1/hooks/%s HTTP/1.1\r\nHost: %s\r\nConnection: "+
		"close\r\nContent-Length: %d\r\n%s\r\n%s", hook, host, len(body), headers, body)
	require.NoError(c, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(c, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c, err)
	var v obj
	require.NoError(c, json.Unmarshal(text, &v), "%s", text)
	return resp.StatusCode, v
}

const endsAtOnce = `{"start":"x","nodes":{"x":{"kind":"choice","default_action":"done"}}}`

func rawDelivery(c *client) {
	flow := c.publishes(endsAtOnce)
	hook := c.hookOf(obj{"flow": flow, "params": obj{"n": "body.n", "agent": `headers["user-agent"]`}})
	headers := standardHeaders("msg_1", `{"n":1}`) + "User-Agent: nobody/1\r\n"
	status, first := c.raw(hook, headers, `{"n":1}`)
	require.Equal(c, 201, status, "%v", first)
	var all sync.WaitGroup
	for range 6 { // each to another member
		all.Go(func() {
			status, again := c.raw(hook, headers, `{"n":1}`)
			require.Equal(c, 200, status, "%v", again)
			require.Equal(c, []any{first["task"], false, true}, []any{again["task"], again["created"], again["repeated"]})
		})
	}
	all.Wait()
	_, list := c.v1().call("GET", "/v1/tasks?flow="+flow, nil)
	require.Len(c, list.(obj)["items"], 1)
	_, task := c.v1().call("GET", "/v1/tasks/"+first["task"].(string)+"?wait_ms=60000", nil)
	require.Equal(c, obj{"n": 1., "agent": "nobody/1"}, task.(obj)["params"])
	status, _ = c.raw(hook, headers, `{"n":2}`)
	require.Equal(c, 401, status)
}

func rawStrangers(c *client) {
	hook := c.hookOf(obj{"flow": c.publishes(endsAtOnce)})
	for name, headers := range map[string]string{
		"nothing":           "",
		"an empty one":      "webhook-id: \r\nwebhook-timestamp: \r\nwebhook-signature: \r\n",
		"another body":      standardHeaders("a", "other"),
		"twice":             standardHeaders("a", "{}") + standardHeaders("a", "{}"),
		"the wrong scheme":  "X-Hub-Signature-256: sha256=" + hex.EncodeToString(hookMAC("{}")) + "\r\n",
		"a hostile list":    "webhook-id: a\r\nwebhook-timestamp: 1\r\nwebhook-signature: " + strings.Repeat("v1, ", 900) + "\r\n",
		"a token of nobody": "Authorization: Bearer x\r\n",
	} {
		status, known := c.raw(hook, headers, `{}`)
		other, unknown := c.raw("nobodys-"+hook, headers, `{}`)
		delete(known, "request_id")
		delete(unknown, "request_id")
		require.Equal(c, []int{401, 401}, []int{status, other}, name)
		require.Equal(c, known, unknown, name)
	}
}

func deliveriesByKey(c *client) {
	flow := c.publishes(
		`{"start":"w","nodes":{"w":{"kind":"wait_event","params":{"signal_key":"$shared.paid"},"post":{"output_key":"got"}}}}`)
	starts := c.hookOf(obj{"flow": flow, "key": "body.order"})
	signals := c.hookOf(obj{"signal": "paid", "flow": flow, "key": "body.order", "value": "body.amount"})
	body := `{"order":"A-7","amount":12}`
	status, early := c.raw(signals, standardHeaders("pay_1", body), body)
	require.Equal(c, 404, status, "%v", early)
	_, started := c.raw(starts, standardHeaders("order_1", body), body)
	status, signaled := c.raw(signals, standardHeaders("pay_1", body), body)
	require.Equal(c, 200, status, "what was refused may come again: %v", signaled)
	require.Equal(c, started["task"], signaled["task"])
	_, ended := c.v1().call("GET", "/v1/tasks/"+started["task"].(string)+"?wait_ms=60000", nil)
	require.Equal(c, 12., ended.(obj)["shared"].(obj)["got"])
	status, again := c.raw(signals, standardHeaders("pay_1", body), body)
	require.Equal(c, []any{200, true}, []any{status, again["repeated"]}, "also when the task has ended")
}

func deliveryAfterKill(shared *client) {
	p := startProcess(shared.T, shared.kind)
	c := newClient(shared.T, p.server)
	hook := c.hookOf(obj{"flow": c.publishes(endsAtOnce)})
	headers := standardHeaders("msg_1", `{}`)
	_, first := c.raw(hook, headers, `{}`)
	p.restart(shared.T)
	status, again := c.raw(hook, headers, `{}`)
	require.Equal(c, []any{200, first["task"], true}, []any{status, again["task"], again["repeated"]})
}
