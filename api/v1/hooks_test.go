package v1_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

// secret signs the deliveries of tests.
const secret = "a secret of twenty-eight chars"

// lines is a log of a test.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// macOf returns the MAC of a signed text.
func macOf(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// standard returns the headers of Standard Webhooks.
func standard(key, id string, at time.Time, body string) []string {
	seconds := fmt.Sprint(at.Unix())
	return []string{"webhook-id", id, "webhook-timestamp", seconds,
		"webhook-signature", "v1," + base64.StdEncoding.EncodeToString(macOf(key, id+"."+seconds+"."+body))}
}

// hook creates a hook with the secret of tests, and returns its path.
func (s *server) hook(settings obj) string {
	s.Helper()
	path := "/v1/hooks/" + s.unique("hook")
	body := obj{"secret": strings.ReplaceAll(secret, " ", "-")}
	for k, v := range settings {
		body[k] = v
	}
	s.call(201, "PUT", path, body)
	return path
}

var key = strings.ReplaceAll(secret, " ", "-")

// deliver sends a body under an id, signed now.
func (s *server) deliver(status int, path, id, body string) obj {
	s.Helper()
	return s.call(status, "POST", path, body, standard(key, id, time.Now(), body)...)
}

func TestASignedDeliveryStartsATaskWithoutAToken(t *testing.T) {
	onBothStores(t, func(s *server) {
		path := s.hook(obj{"flow": s.publish(atOnce), "params": obj{"order": "body.order.id",
			"from": `headers["x-source"]`, "fixed": 7}, "labels": obj{"via": "hook"}})
		body := `{"order": {"id": 9007199254740993}}`
		done := s.call(201, "POST", path, body, append(standard(key, "msg_1", time.Now(), body), "X-Source", "shop")...)
		require.Equal(s, "msg_1", done["delivery"])
		require.Equal(s, true, done["created"])
		task := s.ended(done["task"].(string), "completed")
		require.Contains(s, string(s.send("GET", "/v1/tasks/"+done["task"].(string), nil).body),
			`"params":{"fixed":7,"from":"shop","order":9007199254740993}`)
		require.Equal(s, obj{"via": strings.TrimPrefix(path, "/v1/hooks/")}, task["labels"])
	})
}

func TestARepeatedDeliveryIsAnsweredAsBeforeAndStartsNothing(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(atOnce)
		path := s.hook(obj{"flow": flow})
		first := s.deliver(201, path, "msg_1", `{"n": 1}`)
		again := s.deliver(200, path, "msg_1", `{"n": 1}`)
		require.Equal(s, first["task"], again["task"])
		require.Equal(s, []any{false, true}, []any{again["created"], again["repeated"]})
		s.refused(409, "", "POST", path, `{"n": 2}`, standard(key, "msg_1", time.Now(), `{"n": 2}`)...)
		s.deliver(201, path, "msg_2", `{"n": 1}`)
		require.Len(s, items(s.get("/v1/tasks?flow="+flow)), 2)
	})
}

func TestConcurrentDeliveriesWithOneIDStartOneTask(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(atOnce)
		path, headers := s.hook(obj{"flow": flow}), standard(key, "msg_1", time.Now(), `{}`)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { s.send("POST", path, `{}`, headers...) })
		}
		all.Wait()
		require.Len(s, items(s.get("/v1/tasks?flow="+flow)), 1)
	})
}

func TestUnsignedDeliveriesLearnNothing(t *testing.T) {
	var log lines
	s := start(t, func(set *settings) {
		set.Tokens, set.v1Logger = []string{"t"}, slog.New(slog.NewTextHandler(&log, nil))
	})
	s.call(201, "PUT", "/v1/flows/f", atOnce, "Authorization", "Bearer t")
	s.call(201, "PUT", "/v1/hooks/known", obj{"flow": "f", "secret": key}, "Authorization", "Bearer t")
	now := time.Now()
	for name, headers := range map[string][]string{
		"nothing is signed":      {},
		"another secret":         standard(key+"x", "a", now, `{}`),
		"another body":           standard(key, "a", now, `{"x":1}`),
		"another scheme":         {"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(macOf(key, `{}`))},
		"no base64":              {"webhook-id", "a", "webhook-timestamp", fmt.Sprint(now.Unix()), "webhook-signature", "v1,%%%"},
		"a time that is no time": {"webhook-id", "a", "webhook-timestamp", "1e9", "webhook-signature", "v1,YQ=="},
		"the token alone":        {"Authorization", "Bearer t"},
	} {
		t.Run(name, func(t *testing.T) {
			known := s.refused(401, "path.hook", "POST", "/v1/hooks/known", `{}`, headers...)
			unknown := s.refused(401, "path.hook", "POST", "/v1/hooks/unknown", `{}`, headers...)
			delete(known, "request_id")
			delete(unknown, "request_id")
			require.Equal(t, known, unknown)
		})
	}
	s.refused(401, "path.hook", "POST", "/v1/hooks/known", `{}`)
	require.Equal(t, 1, strings.Count(log.String(), "a delivery to the hook known has a wrong signature"))
	require.Equal(t, 1, strings.Count(log.String(), "a delivery to a hook that is not there"))
	require.NotContains(t, log.String(), "level=WARN")
	require.Equal(t, 401, s.send("GET", "/v1/hooks", nil).status, "hooks are managed with a token")
	s.call(201, "POST", "/v1/hooks/known", `{}`, standard(key, "b", now, `{}`)...)
}

func TestADeliveryAtTheWrongTimeIsRefused(t *testing.T) {
	s := start(t)
	path := s.hook(obj{"flow": s.publish(atOnce)})
	for _, off := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
		p := s.refused(401, "", "POST", path, `{}`, standard(key, "a", time.Now().Add(off), `{}`)...)
		require.Contains(t, p["message"], "five minutes")
	}
	s.call(201, "POST", path, `{}`, standard(key, "a", time.Now().Add(-4*time.Minute), `{}`)...)
}

func TestGitHubAndStripeSignInTheirOwnWay(t *testing.T) {
	s := start(t)
	flow := s.publish(atOnce)
	hub := s.hook(obj{"flow": flow, "scheme": "github", "when": `headers["x-github-event"] == "push"`})
	signed := []string{"X-Hub-Signature-256", "sha256=" + hex.EncodeToString(macOf(key, `{"ref":"main"}`)), "X-GitHub-Event", "push"}
	first := s.call(201, "POST", hub, `{"ref":"main"}`, signed...)
	again := s.call(200, "POST", hub, `{"ref":"main"}`, append(signed, "X-GitHub-Delivery", "another")...)
	require.Equal(t, first["task"], again["task"], "the id of a delivery is not signed: the body is")
	ping := s.call(200, "POST", hub, `{"ref":"main"}`, signed[0], signed[1], "X-GitHub-Event", "ping")
	require.Equal(t, true, ping["ignored"])
	form := "payload=%7B%22ref%22%3A%22form%22%7D"
	sent := s.call(201, "POST", hub, form, "X-Hub-Signature-256", "sha256="+hex.EncodeToString(macOf(key, form)), "X-GitHub-Event", "push",
		"Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, obj{"ref": "form"}, s.get("/v1/tasks/" + sent["task"].(string))["params"])

	stripe := s.hook(obj{"flow": flow, "scheme": "stripe", "header": "X-Pay-Signature", "key": "body.id"})
	at := func(when time.Time) string {
		seconds := fmt.Sprint(when.Unix())
		return "t=" + seconds + ",v1=" + strings.Repeat("0",
			64) + ",v1=" + hex.EncodeToString(macOf(key, seconds+`.{"id":"evt_1"}`)) + ",v0=x"
	}
	first = s.call(201, "POST", stripe, `{"id":"evt_1"}`, "X-Pay-Signature", at(time.Now()))
	again = s.call(200, "POST", stripe, `{"id":"evt_1"}`, "X-Pay-Signature", at(time.Now().Add(-time.Second)))
	require.Equal(t, first["task"], again["task"], "a key makes one task of what is signed anew")
	s.refused(401, "", "POST", stripe, `{"id":"evt_1"}`, "X-Pay-Signature", at(time.Now().Add(-time.Hour)))
}

func TestADeliverySignalsATaskOnce(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(waits)
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": flow, "params": obj{}, "idempotency_key": "order-7"})["id"].(string)
		path := s.hook(obj{"signal": "go", "flow": flow, "key": `"order-" + string(body.order)`, "value": obj{"paid": "body.amount"}})
		s.refused(404, "hook.signal", "POST", path, `{"order":8,"amount":1}`, standard(key, "a", time.Now(), `{"order":8,"amount":1}`)...)
		done := s.deliver(200, path, "b", `{"order":7,"amount":3.50}`)
		require.Equal(s, id, done["task"])
		ended := s.ended(id, "completed")
		require.Equal(s, obj{"paid": 3.5}, ended["shared"].(obj)["got"])
		require.Equal(s, true, s.deliver(200, path, "b", `{"order":7,"amount":3.50}`)["repeated"])
		var signals int
		for _, e := range items(s.get("/v1/tasks/" + id + "/events?limit=500")) {
			if strings.Contains(fmt.Sprint(e), "hook "+strings.TrimPrefix(path, "/v1/hooks/")) {
				signals++
			}
		}
		require.Equal(s, 1, signals)

		direct := s.hook(obj{"signal": "go", "task": "body.task"})
		other := s.call(201, "POST", "/v1/tasks", obj{"flow": flow})["id"].(string)
		s.deliver(200, direct, "c", `{"task":"`+other+`"}`)
		s.ended(other, "completed")
	})
}

func TestSecretsAreShownOnceAndRotated(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(atOnce)
		path := "/v1/hooks/" + s.unique("hook")
		made := s.call(201, "PUT", path, obj{"flow": flow})
		old := made["secret"].(string)
		require.True(s, strings.HasPrefix(old, "whsec_"))
		sign := func(secret, id string) []string {
			decoded, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
			require.NoError(s, err)
			return standard(string(decoded), id, time.Now(), `{}`)
		}
		require.NotContains(s, s.call(200, "PUT", path, obj{"flow": flow}), "secret")
		s.call(201, "POST", path, `{}`, sign(old, "a")...)

		rotated := s.call(200, "PUT", path, obj{"flow": flow, "new_secret": true, "old_secret_ttl_ms": 3_600_000})
		require.Contains(s, rotated, "old_secret_until")
		s.call(201, "POST", path, `{}`, sign(rotated["secret"].(string), "b")...)
		s.call(201, "POST", path, `{}`, sign(old, "c")...)
		last := s.call(200, "PUT", path, obj{"flow": flow, "secret": "given-by-the-operator"})
		require.NotContains(s, last, "secret")
		s.refused(401, "path.hook", "POST", path, `{}`, sign(rotated["secret"].(string), "d")...)
		s.call(201, "POST", path, `{}`, standard("given-by-the-operator", "e", time.Now(), `{}`)...)
		for _, read := range []string{path, "/v1/hooks"} {
			text := string(s.send("GET", read, nil).body)
			require.NotContains(s, text, "whsec_")
			require.NotContains(s, text, "given-by")
		}
	})
}

func TestADisabledHookRejectsSignedDeliveries(t *testing.T) {
	s := start(t)
	path := s.hook(obj{"flow": s.publish(atOnce), "disabled": true})
	s.refused(403, "", "POST", path, `{}`, standard(key, "a", time.Now(), `{}`)...)
	s.refused(401, "path.hook", "POST", path, `{}`, standard("another secret of nobody", "a", time.Now(), `{}`)...)
}

func TestHooksAreListedChangedAndDeleted(t *testing.T) {
	onBothStores(t, func(s *server) {
		flow := s.publish(atOnce)
		for _, name := range []string{"b", "a", "c"} {
			s.call(201, "PUT", "/v1/hooks/"+name, obj{"flow": flow})
		}
		page := s.get("/v1/hooks?limit=2")
		require.Equal(s, []any{"a", "b"}, values(page, "name"))
		require.Equal(s, []any{"c"}, values(s.get("/v1/hooks?cursor="+page["next"].(string)), "name"))
		changed := s.call(200, "PUT", "/v1/hooks/a", obj{"flow": flow, "when": "body.x == 1", "revision": 1})
		require.Equal(s, []any{2., "body.x == 1", "/v1/hooks/a"}, []any{changed["revision"], changed["when"], changed["path"]})
		s.refused(409, "body.revision", "PUT", "/v1/hooks/a", obj{"flow": flow, "revision": 1})
		s.call(200, "DELETE", "/v1/hooks/a", nil)
		s.refused(404, "path.hook", "GET", "/v1/hooks/a", nil)
		s.refused(404, "path.hook", "DELETE", "/v1/hooks/a", nil)
	})
}

// contested is a store in which another caller changes a hook just before it is written.
type contested struct {
	persistence.Store
	others *atomic.Int64 // remaining changes by the other caller
}

func (c contested) PutHook(ctx context.Context, h persistence.Hook) error {
	if c.others.Add(-1) < 0 {
		return c.Store.PutHook(ctx, h)
	}
	theirs := h
	theirs.Secrets = []persistence.HookSecret{{Text: "the secret of somebody else"}}
	if err := c.Store.PutHook(ctx, theirs); err != nil {
		return err
	}
	return c.Store.PutHook(ctx, h)
}

func TestConcurrentChangesOfAHookConflictOnlyWithARevision(t *testing.T) {
	var others atomic.Int64
	onBothStores(t, func(s *server) {
		flow := s.publish(atOnce)
		others.Store(1)
		set := s.call(200, "PUT", "/v1/hooks/new", obj{"flow": flow})
		require.Equal(s, []any{2., false, nil}, []any{set["revision"], set["created"], set["secret"]}, "it has a secret by now")
		others.Store(2)
		require.Equal(s, 5., s.call(200, "PUT", "/v1/hooks/new", obj{"flow": flow, "when": "body.x == 1"})["revision"])
		others.Store(1)
		s.refused(409, "body.revision", "PUT", "/v1/hooks/new", obj{"flow": flow, "revision": 5})
		others.Store(1000)
		s.refused(429, "", "PUT", "/v1/hooks/new", obj{"flow": flow})
		others.Store(0)
	}, func(set *settings) {
		set.wrap = func(store persistence.Store) persistence.Store { return contested{store, &others} }
	})
}

func TestAHookIsCheckedWhenItIsSet(t *testing.T) {
	s := start(t)
	flow := s.publish(atOnce)
	for name, tt := range map[string]struct {
		settings obj
		status   int
		where    string
	}{
		"no flow":                {obj{}, 400, "body.flow"},
		"an unknown flow":        {obj{"flow": "none"}, 404, "body.flow"},
		"an unknown version":     {obj{"flow": flow, "version": 9}, 404, "body.version"},
		"a broken expression":    {obj{"flow": flow, "params": obj{"a": []any{"body.("}}}, 400, "body.params.a[0]"},
		"an unknown variable":    {obj{"flow": flow, "when": "params.x == 1"}, 400, "body.when"},
		"no condition":           {obj{"flow": flow, "when": "'text'"}, 400, "body.when"},
		"a label":                {obj{"flow": flow, "labels": obj{"a": "1 +"}}, 400, "body.labels.a"},
		"a task of a start":      {obj{"flow": flow, "task": "body.id"}, 400, "body.task"},
		"a signal to nobody":     {obj{"signal": "go"}, 400, "body.task"},
		"a signal to two":        {obj{"signal": "go", "task": "body.t", "flow": flow, "key": "body.k"}, 400, "body.task"},
		"params of a signal":     {obj{"signal": "go", "task": "body.t", "params": "body"}, 400, "body.params"},
		"a header of the scheme": {obj{"flow": flow, "header": "X-Mine"}, 400, "body.header"},
		"a short secret":         {obj{"flow": flow, "secret": "short"}, 400, "body.secret"},
		"a secret with a blank":  {obj{"flow": flow, "secret": "one that has got some blanks"}, 400, "body.secret"},
	} {
		t.Run(name, func(_ *testing.T) { s.refused(tt.status, tt.where, "PUT", "/v1/hooks/h", tt.settings) })
	}
	declares := s.publish(`{"start":"x","inputs":{"order":"int","note":"optional ` +
		`text"},"nodes":{"x":{"kind":"choice","default_action":"done"}}}`)
	s.refused(400, "body.params.ordr", "PUT", "/v1/hooks/h", obj{"flow": declares, "params": obj{"ordr": "body.id"}})
	s.refused(400, "body.params", "PUT", "/v1/hooks/h", obj{"flow": declares, "params": obj{"note": "body.note"}})
	fits := s.hook(obj{"flow": declares, "params": obj{"order": "body.id"}})
	s.refused(422, "hook.params", "POST", fits, `{"id":"text"}`, standard(key, "a", time.Now(), `{"id":"text"}`)...)
	s.deliver(201, fits, "b", `{"id":7}`)
	s.refused(400, "path.hook", "PUT", "/v1/hooks/UPPER", obj{"flow": flow})
	faults := s.refused(400, "body.when", "PUT", "/v1/hooks/h", obj{"flow": flow, "when": "1 +", "key": "2 +"})["errors"]
	require.Len(t, faults, 2)
}

func TestADeliveryThatDoesNotFitIsRefusedAndMayComeAgain(t *testing.T) {
	s := start(t)
	path := s.hook(obj{"flow": s.publish(atOnce), "params": obj{"id": "body.id"}})
	s.refused(400, "hook", "POST", path, `{}`, standard(key, "a", time.Now(), `{}`)...)
}

func TestADeliveryThatIsTooLargeIsRefused(t *testing.T) {
	s := start(t)
	path := s.hook(obj{"flow": s.publish(atOnce)})
	large := `"` + strings.Repeat("x", 1<<20) + `"`
	require.Equal(t, 413, s.send("POST", path, large, standard(key, "a", time.Now(), large)...).status)
	require.Equal(t, 413, s.send("POST", "/v1/hooks/unknown", large).status)
}

// forgetful is a store that fails to note the results of deliveries, like a member that is killed
// before it does.
type forgetful struct{ persistence.Store }

func (forgetful) EndDelivery(context.Context, string, string, []byte) error {
	return errors.New("killed")
}

func TestADeliveryWithoutAStoredResultHasNoSecondEffect(t *testing.T) {
	for _, postgres := range []bool{false, true} {
		s := start(t, func(set *settings) {
			set.postgres, set.wrap = postgres, func(s persistence.Store) persistence.Store { return forgetful{s} }
		})
		flow := s.publish(waits)
		starts := s.hook(obj{"flow": flow, "params": obj{"n": "body.n"}})
		first := s.deliver(201, starts, "a", `{"n":1}`)
		again := s.deliver(200, starts, "a", `{"n":1}`)
		require.Equal(t, first["task"], again["task"])
		s.call(200, "PUT", starts, obj{"flow": flow, "params": obj{"m": "body.n"}})
		again = s.deliver(200, starts, "a", `{"n":1}`)
		require.Equal(t, first["task"], again["task"], "the hook was changed meanwhile")
		require.Len(t, items(s.get("/v1/tasks?flow="+flow)), 1)

		id := first["task"].(string)
		signals := s.hook(obj{"signal": "counted", "task": "body.task"})
		for range 3 {
			s.deliver(200, signals, "b", `{"task":"`+id+`"}`)
		}
		require.Equal(t, 1, strings.Count(string(s.send("GET", "/v1/tasks/"+id+"/events?limit=500", nil).body), `"counted"`))
	}
}

func TestTheBodyOfADeliverySetsNoControlParams(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(`{"start":"ask","nodes":{"ask":{"kind":"approval","params":{"approval_key":"$shared.ok","title":"Ship it?"}}}}`)
		params := obj{"approval_key": "body.approval_key", "title": "body.title", "timeout_ms": "body.timeout_ms", "z": "body.z"}
		path := s.hook(obj{"flow": slug, "params": params})
		id := s.deliver(201, path, "a", `{"approval_key":"$params.z","title":"Nothing to see","timeout_ms":1,"z":true}`)["task"].(string)
		found := s.until("/v1/approvals?q="+id, func(v obj) bool { return len(v["items"].([]any)) == 1 })
		open := items(found)[0]
		require.Equal(s, "open", open["state"])
		require.Equal(s, "Ship it?", open["title"])
		require.Equal(s, "running", s.get("/v1/tasks/" + id)["state"])
		s.call(200, "POST", "/v1/tasks/"+id+"/signal", obj{"key": "ok", "value": true})
		s.ended(id, "completed")
	})
}

func TestKeysOfDeliveriesWithInvalidTextAreRefused(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		starts, signals := s.hook(obj{"flow": slug, "key": "body.id"}), s.hook(obj{"signal": "go", "flow": slug, "key": "body.id"})
		for i, lost := range []string{`\ud800`, `a\udfff`, "\ufffd"} {
			body := `{"id":"` + lost + `"}`
			for name, path := range map[string]string{"start": starts, "signal": signals} {
				sent := s.send("POST", path, body, standard(key, fmt.Sprint(name, i), time.Now(), body)...)
				require.Equal(s, 400, sent.status, "%s %s: %s", name, lost, sent.body)
				require.Contains(s, string(sent.body), "U+FFFD, which stands for text that was lost", name)
			}
		}
		require.Empty(s, items(s.get("/v1/tasks?flow="+slug)), "nothing was started")
	})
}
