package attack

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// Attacks that need only a connection. Strangers have no token.
var onConnections = []attack{
	{name: "idle connections and slow requests", strike: idlers},
	{name: "WebSockets that flood", strike: sockets},
	{name: "streams of HTTP/2 that are reset", strike: resets},
	{name: "strangers", strike: strangers},
}

func idlers(a *attacker) {
	a.each(a.of(300, 4000), 50, func(i int) {
		switch i % 4 {
		case 0:
			a.say("")
		case 1:
			a.say("GET /v1/tasks HTTP/1.1\r\nHost: " + a.address + "\r\nX-Slow: ")
		case 2:
			a.say(strings.TrimSuffix(a.head("POST", "/v1/tasks", "Content-Length: 8000000"), "\r\n") + "\r\n{")
		case 3:
			a.say(a.head("POST", "/v1/validate", "Transfer-Encoding: chunked") + "ffff\r\n{")
		}
	})
	pause(a.ctx, time.Duration(a.of(300, 12_000))*time.Millisecond)
}

// sockets subscribe, unsubscribe, send garbage and never read.
func sockets(a *attacker) {
	upgrade := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
	a.each(a.of(40, 400), 20, func(i int) {
		conn := a.deaf(a.head("GET", "/v1/ws", upgrade...))
		if conn == nil {
			return
		}
		_ = conn.SetWriteDeadline(time.Now().Add(time.Duration(a.of(300, 2000)) * time.Millisecond))
		for n := range 200 {
			text := fmt.Sprintf(`{"subscribe":{"channel":"task:no-%d-%d"}}`, i, n)
			if n%10 == 9 {
				text = strings.Repeat("x", 4000)
			}
			if _, err := conn.Write(frame(text)); err != nil {
				return // it is closed, or not being read
			}
		}
	})
	pause(a.ctx, time.Duration(a.of(200, 5000))*time.Millisecond)
}

func resets(a *attacker) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	flood := &client{base: a.base, token: a.token, http: &http.Client{Transport: transport}}
	a.each(a.of(500, 10_000), 100, func(i int) {
		ctx, reset := context.WithTimeout(a.ctx, time.Duration(i%10)*time.Millisecond)
		defer reset()
		a.heard(flood.ask(ctx, "GET", "/v1/tasks?limit=50", nil))
	})
}

// strangers send requests without a token, with wrong tokens, with other host names, and from web
// pages.
func strangers(a *attacker) {
	routes := []string{"GET /v1/tasks", "POST /v1/tasks", "GET /v1/flows", "PUT /v1/flows/x",
		"POST /v1/validate", "GET /v1/jobs", "GET /v1/workers", "GET /v1/ws",
		"GET /v1/tasks/x", "POST /v1/tasks/x/signal", "POST /v1/tasks/x/cancel", "GET /v1/tasks/x/stream", "GET /v1/info", "GET /metrics",
		"GET /api/tasks", "POST /api/tasks", "POST /api/queue/poll", "POST /queue/poll",
		"POST /queue/complete", "POST /api/workers/register", "GET /list",
		"POST /api/flows/x/ensure", "POST /flows/x/runs", "GET /runs/x", "DELETE /flows/x"}
	credentials := []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + a.token + "x",
		"Basic " + a.token, "bearer\t" + a.token + " x", "Token " + a.token, a.token}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		for _, credential := range credentials {
			if a.token != "" {
				a.knock(method, path, http.StatusUnauthorized, "Authorization", credential)
			}
		}
		a.knock(method, path, http.StatusForbidden, "Host", "evil.example")
		a.knock(method, path, http.StatusForbidden, "Origin", "https://evil.example")
	}
}

// knock sends a request that must be refused.
func (a *attacker) knock(method, path string, want int, name, value string) {
	req, err := a.request(a.ctx, method, path, json2(method))
	if err != nil {
		a.hole("%v", err)
		return
	}
	if name == "Host" {
		req.Host = value
	} else {
		req.Header.Set(name, value)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	a.mu.Lock()
	a.answers[resp.StatusCode]++
	a.mu.Unlock()
	if resp.StatusCode != want {
		a.hole("%s %s with %s %q: %d, not %d", method, path, name, value, resp.StatusCode, want)
	}
}

func json2(method string) any {
	if method == "GET" {
		return nil
	}
	return obj{}
}

// deaf sends a request and does not read the answer.
func (a *attacker) deaf(text string) net.Conn {
	conn := a.say(text)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(4 << 10) // a large kernel buffer would hide the effect
	}
	return conn
}

// frame returns a text as a WebSocket frame of a client, masked with zeros.
func frame(text string) []byte {
	head := []byte{0x81, 0x80 | byte(min(len(text), 126))}
	if len(text) >= 126 {
		head = append(head, byte(len(text)>>8), byte(len(text)))
	}
	return append(append(head, 0, 0, 0, 0), text...)
}
