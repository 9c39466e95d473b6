package attack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Attacks on hooks, which need no token.
var onHooks = []attack{
	{name: "deliveries that nobody has signed", strike: forgers},
	{name: "a delivery that comes a thousand times", strike: repeaters},
}

const hookSecret = "whoever-has-this-may-deliver"

// hook creates a hook that starts tasks of a flow.
func (a *attacker) hook() (name, flow string) {
	flow, name = a.name("hooked"), a.name("hook")
	a.publish("hooked", waits)
	a.urge("PUT", "/v1/hooks/"+name, obj{"flow": flow, "secret": hookSecret})
	return name, flow
}

// forgers flood existing and missing hooks with large and small bodies, some of which never end.
func forgers(a *attacker) {
	name, flow := a.hook()
	large := strings.Repeat("x", 1<<20)
	nobody := newClient(a.base, "")
	a.each(a.of(300, 6000), 50, func(i int) {
		path := "/v1/hooks/" + []string{name, fmt.Sprintf("no-%d", i)}[i%2]
		switch i % 6 {
		case 0, 1:
			a.say("POST " + path + " HTTP/1.1\r\nHost: " + a.address + "\r\nContent-Length: 1000000\r\n\r\n{")
		case 2:
			a.forged(nobody, path, large, "v1,"+strings.Repeat("QQ", 500))
		default:
			a.forged(nobody, path, `{"a": `, strings.Repeat("v1,x ", i%700))
		}
	})
	if begun := a.ask(a.ctx, "GET", "/v1/tasks?flow="+flow, nil); begun.status == http.StatusOK &&
		!strings.Contains(string(begun.body), `"items":[]`) {
		a.hole("a delivery that nobody has signed has started a task: %.300s", begun.body)
	}
}

// forged sends an unsigned delivery. It must be refused, or rejected for lack of room.
func (a *attacker) forged(by *client, path, body, signature string) {
	status := a.deliver(by, path, body, "msg", fmt.Sprint(time.Now().Unix()), signature)
	switch status {
	case 0, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestEntityTooLarge:
	default:
		a.hole("POST %s without a right signature: %d", path, status)
	}
}

// deliver sends a delivery and returns the status of the answer; 0 for none.
func (a *attacker) deliver(by *client, path, body, id, at, signature string) int {
	req, err := http.NewRequestWithContext(a.ctx, "POST", a.base+path, strings.NewReader(body))
	if err != nil {
		a.hole("%v", err)
		return 0
	}
	for header, value := range map[string]string{"webhook-id": id, "webhook-timestamp": at,
		"webhook-signature": signature, "Content-Type": "application/json"} {
		req.Header.Set(header, value)
	}
	resp, err := by.http.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	a.mu.Lock()
	a.answers[resp.StatusCode]++
	a.mu.Unlock()
	return resp.StatusCode
}

// repeaters have recorded a delivery and replay it.
func repeaters(a *attacker) {
	name, flow := a.hook()
	at := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write([]byte("msg_1." + at + ".{}"))
	signature := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	nobody := newClient(a.base, "")
	a.each(a.of(200, 5000), 50, func(int) { a.deliver(nobody, "/v1/hooks/"+name, "{}", "msg_1", at, signature) })
	begun := a.ask(a.ctx, "GET", "/v1/tasks?flow="+flow, nil)
	if n := strings.Count(string(begun.body), `"version_id"`); begun.status == http.StatusOK && n != 1 {
		a.hole("one delivery, sent again and again, has started %d tasks", n)
	}
	a.send("DELETE", "/v1/flows/"+flow+"?tasks=true", nil)
}
