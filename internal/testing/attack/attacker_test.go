package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
)

// attack is one kind of attack.
type attack struct {
	name string
	// strike runs the attack. Its load and duration are bounded.
	strike func(a *attacker)
	// busy: its tasks run forever and use all available time.
	busy bool
}

// attacker runs one attack and records the touched tasks and the answers.
type attacker struct {
	*client
	ctx     context.Context // of the attack
	attack  string
	address string
	full    bool
	tag     string // suffix of the names of this attack

	mu       sync.Mutex
	victims  []victim
	flows    map[string]string // version ids by slug
	answers  map[int]int       // count by status; 0 for no answer
	holes    []string
	refusals []string // the first ones
	openings []net.Conn
}

// strikeTime bounds an attack whose requests are not answered.
const strikeTime = time.Minute

// tags numbers the attacks.
var tags atomic.Int64

func newAttacker(ctx context.Context, m *member, attack string, full bool) *attacker {
	return &attacker{client: m.client, ctx: ctx, attack: attack, address: m.address, full: full, tag: strconv.FormatInt(tags.Add(1), 10),
		flows: map[string]string{}, answers: map[int]int{}}
}

// of returns the load for the short or the full form.
func (a *attacker) of(short, full int) int {
	if a.full {
		return full
	}
	return short
}

// name makes a word unique to this attack.
func (a *attacker) name(word string) string { return word + "_" + a.tag }

// hole records a broken rule.
func (a *attacker) hole(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.holes = append(a.holes, fmt.Sprintf(format, args...))
}

// send sends a request once and checks the answer.
func (a *attacker) send(method, path string, body any) answer {
	return a.sendWithin(a.ctx, method, path, body)
}

// sendWithin is send for clients that hang up.
func (a *attacker) sendWithin(ctx context.Context, method, path string, body any) answer {
	got := a.ask(ctx, method, path, body)
	a.heard(got)
	return got
}

func (a *attacker) heard(got answer) {
	a.mu.Lock()
	a.answers[got.status]++
	if got.status >= 400 && len(a.refusals) < 3 {
		a.refusals = append(a.refusals, got.String())
	}
	a.mu.Unlock()
	if h := got.hole(); h != "" {
		a.hole("%s", h)
	}
}

// urge repeats a request while the member is busy.
func (a *attacker) urge(method, path string, body any) answer {
	for {
		got := a.send(method, path, body)
		if !got.busy() || a.ctx.Err() != nil {
			return got
		}
		pause(a.ctx, 100*time.Millisecond)
	}
}

// publish reports whether a definition was accepted. The flow gets a name unique to this attack.
func (a *attacker) publish(flow string, definition yaml) bool {
	got := a.urge("PUT", "/v1/flows/"+a.name(flow), definition)
	var published wire.PublishResult
	if !got.ok() || got.into(&published) != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flows[a.name(flow)] = published.Version.ID
	return true
}

// start starts a task; "" if it is finally refused.
func (a *attacker) start(flow string, params any) string {
	encoded, err := json.Marshal(params)
	if err != nil {
		a.hole("%v", err)
	}
	return a.startWith(flow, encoded)
}

func (a *attacker) startWith(flow string, params json.RawMessage) string {
	return a.started(flow, a.urge("POST", "/v1/tasks", text(`{"flow":%q,"params":%s}`, a.name(flow), params)))
}

// started records the task in an answer of any dialect.
func (a *attacker) started(flow string, got answer) string {
	id := got.task()
	if id != "" {
		a.touch(flow, id)
	}
	return id
}

// touch records a task. Afterwards it must be readable, listed and cancelable.
func (a *attacker) touch(flow, task string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	slug := a.name(flow)
	a.victims = append(a.victims, victim{id: task, attack: a.attack, flow: slug, version: a.flows[slug]})
}

// each calls do n times, atOnce at the same time.
func (a *attacker) each(n, atOnce int, do func(i int)) {
	var work sync.WaitGroup
	next := make(chan int)
	for range min(n, atOnce) {
		work.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := 0; i < n && a.ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	work.Wait()
}

// atOnce calls do n times concurrently.
func (a *attacker) atOnce(n int, do func(i int)) { a.each(n, n, do) }

// dial opens a connection that stays open until the end of the attack.
func (a *attacker) dial() net.Conn {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(a.ctx, "tcp", a.address)
	if err != nil {
		return nil // the member may refuse
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openings = append(a.openings, conn)
	return conn
}

// say writes a raw request without reading the answer, and returns the connection.
func (a *attacker) say(text string) net.Conn {
	conn := a.dial()
	if conn == nil {
		return nil
	}
	_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
	_, _ = conn.Write([]byte(text)) // the member may hang up
	return conn
}

// head returns the head of a request.
func (a *attacker) head(method, path string, more ...string) string {
	lines := []string{method + " " + path + " HTTP/1.1", "Host: " + a.address}
	if a.token != "" {
		lines = append(lines, "Authorization: Bearer "+a.token)
	}
	return strings.Join(append(lines, more...), "\r\n") + "\r\n\r\n"
}

// hangUp closes the open connections.
func (a *attacker) hangUp() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.openings {
		_ = conn.Close() // the member may have closed it
	}
	a.openings = nil
}
