package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
)

// contested is a flow whose tasks loop until they are canceled: a claimed job is completed, and
// then the task waits for a signal.
const contested = `
start: work
nodes:
  work: {exec_type: queue, service: %s, prep: {input_key: note}, post: {output_key: done}}
  gate: {kind: wait_event, params: {signal_key: $shared.go}}
edges:
  - {from: work, action: default, to: gate}
  - {from: gate, action: default, to: work}
`

// rivals use the same few tasks through the members of a cluster and record the answers.
type rivals struct {
	t       *testing.T
	bases   []string
	http    *http.Client
	tasks   []string // their services are service-0, service-1, …
	begun   time.Time
	numbers atomic.Int64 // makes every value unique
	asked   atomic.Int64
	turn    chan struct{} // gets a value after every batch of answers

	mu   sync.Mutex
	told history
}

// rival is one client. It uses one member as long as that answers.
type rival struct {
	*rivals
	number int
	member int
	rng    *rand.Rand
	held   map[string]answered // claims, by task
}

// work sends n requests about every second task. A killed member holds up all requests about a task
// until another member has it. So at most five are concurrent: the checker may have to try every
// order of them.
func (r *rival) work(ctx context.Context, n int) {
	for range n {
		i := (r.number + 2*r.rng.IntN(len(r.tasks)/2)) % len(r.tasks)
		task := r.tasks[i]
		claim, holds := r.held[task]
		switch p := r.rng.IntN(100); {
		case p < 25:
			r.read(ctx, task)
		case p < 50:
			r.command(ctx, asked{task: task, what: "signal", key: []string{"go", "note"}[r.rng.IntN(2)], value: r.number64()})
		case p < 65 && holds:
			r.command(ctx, asked{task: task, what: "complete", job: claim.job, token: "guessed", value: `"wrong"`})
		case holds:
			r.command(ctx, asked{task: task, what: "complete", job: claim.job, token: claim.token, value: r.number64()})
			if r.rng.IntN(4) > 0 { // otherwise it is completed again
				delete(r.held, task)
			}
		default:
			r.claim(ctx, task, fmt.Sprint("service-", i))
		}
		if r.asked.Add(1)%100 == 0 {
			r.turn <- struct{}{}
		}
	}
}

// number64 returns a new unique value.
func (r *rivals) number64() string { return fmt.Sprint(r.numbers.Add(1)) }

// since returns the time in a history.
func (r *rivals) since() int64 { return time.Since(r.begun).Nanoseconds() }

func (r *rival) record(in asked, out answered, call int64) {
	op := porcupine.Operation{ClientId: r.number, Input: in, Output: out, Call: call, Return: r.since()}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, op)
}

func (r *rival) read(ctx context.Context, task string) {
	call := r.since()
	var got wire.Task
	if !assert.Equal(r.t, 200, r.insist(ctx, "GET", "/v1/tasks/"+task, "", nil, &got)) {
		return
	}
	out := answered{state: got.State, shared: map[string]string{}}
	for key, value := range got.Shared {
		out.shared[key] = string(value)
	}
	r.record(asked{task: task, what: "read"}, out, call)
}

// command sends a command, repeatedly if necessary; it has one effect.
func (r *rival) command(ctx context.Context, in asked) {
	call := r.since()
	path, body := "/v1/tasks/"+in.task+"/"+in.what, any(nil)
	switch in.what {
	case "signal":
		in.request = "signal-" + in.value
		body = wire.Signal{Key: in.key, Value: json.RawMessage(in.value)}
	case "complete":
		path, body = "/queue/complete", map[string]any{"queue_id": "q-" + in.job, "token": in.token, "result": json.RawMessage(in.value)}
	}
	r.record(in, answered{status: r.insist(ctx, "POST", path, in.request, body, nil)}, call)
}

// claim polls for a task's job. It records no claim whose answer was lost: no client knows the
// token, so that claim changes no later answer.
func (r *rival) claim(ctx context.Context, task, service string) {
	in := asked{task: task, what: "claim", worker: fmt.Sprint("rival-", r.number)}
	call := r.since()
	status, answer, err := r.send(ctx, "POST", "/queue/poll", "",
		map[string]any{"worker_id": in.worker, "services": []string{service}, "wait_ms": 20})
	var job struct{ ID, Token string }
	if err == nil && status == 200 && assert.NoError(r.t, json.Unmarshal(answer, &job)) {
		out := answered{job: strings.TrimPrefix(job.ID, "q-"), token: job.Token}
		r.record(in, out, call)
		r.held[task] = out
	}
}

// insist repeats a request until there is an answer.
func (r *rival) insist(ctx context.Context, method, path, key string, body, out any) int {
	for {
		status, answer, err := r.send(ctx, method, path, key, body)
		switch {
		case err == nil && status < 300 && out != nil:
			assert.NoError(r.t, json.Unmarshal(answer, out))
			return status
		case err == nil && status < 500 && status != http.StatusTooManyRequests:
			return status
		case ctx.Err() != nil:
			assert.NoError(r.t, ctx.Err(), "%s %s: %d %s %v", method, path, status, answer, err)
			return 0
		}
		r.member++ // use the next member
		time.Sleep(20 * time.Millisecond)
	}
}

func (r *rival) send(ctx context.Context, method, path, key string, body any) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	var b []byte
	if body != nil {
		if b, err = json.Marshal(body); err != nil {
			return 0, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.bases[r.member%len(r.bases)]+path, bytes.NewReader(b))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

const (
	contestedTasks = 6
	rivalsEach     = 3 // per member
	rivalsAsk      = 80
)

// Clients signal, claim, complete, cancel and read the same tasks through three members
// concurrently; one is killed and another leaves.
func TestHistoriesAreLinear(t *testing.T) {
	t.Parallel()
	s := newStage(t, pgtest.DSN(t))
	s.visibility = time.Hour // no claim expires
	m := s.together(3)
	r := &rivals{t: t, http: s.client.HTTP, begun: time.Now(), turn: make(chan struct{}, 100)}
	for _, address := range m.addresses {
		r.bases = append(r.bases, "http://"+address)
	}
	plans := r.begin(s.client)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var work sync.WaitGroup
	for i := range 3 * rivalsEach {
		one := &rival{rivals: r, number: i, member: i, rng: rand.New(rand.NewPCG(1, uint64(i))), held: map[string]answered{}}
		work.Go(func() {
			one.work(ctx, rivalsAsk)
			if i < contestedTasks { // while other clients continue
				one.command(ctx, asked{task: r.tasks[i], what: "cancel"})
				one.work(ctx, rivalsAsk/4)
			}
		})
	}
	<-r.turn
	m.processes[2].Kill()
	<-r.turn
	m.start(2)
	<-r.turn
	require.NoError(t, m.processes[1].Stop(patience))
	m.start(1)
	work.Wait()

	for task, result := range r.told.check(plans) {
		require.Equal(t, porcupine.Ok, result, "no order of what was answered about %s is the core's:\n%s", task, r.told.of(task))
	}
	r.tellHowMuch()
	for name, defect := range defects {
		t.Run(name, func(t *testing.T) {
			wrong, task := defect(r.told)
			require.NotEmpty(t, task, "the history has no place for it")
			require.Equal(t, porcupine.Illegal, wrong.of(task).check(plans)[task], "it is found")
		})
	}
}

// begin starts the tasks, each of a flow of its own.
func (r *rivals) begin(c *errands.Client) map[string]*flow.Plan {
	plans := map[string]*flow.Plan{}
	for i := range contestedTasks {
		slug, definition := fmt.Sprint("contested-", i), fmt.Appendf(nil, contested, fmt.Sprint("service-", i))
		require.NoError(r.t, c.Publish(r.t.Context(), slug, definition))
		started, err := c.Start(r.t.Context(), slug, slug, map[string]any{})
		require.NoError(r.t, err)
		r.tasks = append(r.tasks, started.ID)
		plan, problems := compile.Text(definition, flow.DefaultLimits)
		require.NoError(r.t, problems.Err())
		plans[started.ID] = plan
	}
	return plans
}

// tellHowMuch checks that the history contains enough requests.
func (r *rivals) tellHowMuch() {
	counts := map[string]int{}
	for _, op := range r.told {
		in, out := op.Input.(asked), op.Output.(answered)
		what := in.what
		if out.status >= 400 {
			what += ", refused"
		}
		counts[what]++
	}
	r.t.Logf("%d answers about %d tasks: %v", len(r.told), len(r.tasks), counts)
	for _, what := range []string{"read", "signal", "claim", "complete", "complete, refused", "cancel"} {
		require.NotZero(r.t, counts[what], what)
	}
}

// defects are possible errors of a member, inserted into the answers. Each returns the affected
// task.
var defects = map[string]func(h history) (history, string){
	"a stale read": func(h history) (history, string) {
		return h.changed(func(op porcupine.Operation) (porcupine.Operation, bool) {
			in, out := op.Input.(asked), op.Output.(answered)
			for _, before := range h.of(in.task) { // a read before a signal that precedes this read
				if in.what != "read" || before.Input.(asked).what != "read" || !h.signaled(in.task, before.Return, op.Call) {
					continue
				}
				out.shared = before.Output.(answered).shared
				op.Output = out
				return op, true
			}
			return op, false
		})
	},
	"a job that two hold": func(h history) (history, string) {
		for _, op := range h {
			in, out := op.Input.(asked), op.Output.(answered)
			if in.what != "complete" || out.status != 200 {
				continue
			}
			for _, claim := range h.of(in.task) {
				if got := claim.Output.(answered); claim.Input.(asked).what == "claim" &&
					got.token == in.token && op.Call-claim.Return > 2 {
					got.token = "of another"
					claim.Output, claim.Call, claim.Return = got, claim.Return+1, op.Call-1
					return append(slices.Clone(h), claim), in.task
				}
			}
		}
		return nil, ""
	},
	"a completion that is lost": func(h history) (history, string) {
		for i, op := range h {
			in := op.Input.(asked)
			seen := slices.ContainsFunc(h.of(in.task), func(read porcupine.Operation) bool {
				return read.Output.(answered).shared["done"] == in.value
			})
			if in.what == "complete" && in.token != "guessed" && seen && h.completions(in.job, in.token) == 1 {
				return slices.Delete(slices.Clone(h), i, i+1), in.task
			}
		}
		return nil, ""
	},
}

// changed returns the history with the first possible change.
func (h history) changed(change func(porcupine.Operation) (porcupine.Operation, bool)) (history, string) {
	for i, op := range h {
		if op, ok := change(op); ok {
			wrong := slices.Clone(h)
			wrong[i] = op
			return wrong, op.Input.(asked).task
		}
	}
	return nil, ""
}

// signaled reports whether a signal came between two times.
func (h history) signaled(task string, after, before int64) bool {
	return slices.ContainsFunc(h.of(task), func(op porcupine.Operation) bool {
		in := op.Input.(asked)
		return in.what == "signal" && in.key == "note" && op.Output.(answered).status == 200 && op.Call > after && op.Return < before
	})
}

func (h history) completions(job, token string) (n int) {
	for _, op := range h {
		if in := op.Input.(asked); in.what == "complete" && in.job == job && in.token == token {
			n++
		}
	}
	return n
}

// String returns the history ordered by start.
func (h history) String() string {
	var b strings.Builder
	for _, op := range slices.SortedFunc(slices.Values(h), func(a, b porcupine.Operation) int { return int(a.Call - b.Call) }) {
		in, out := op.Input.(asked), op.Output.(answered)
		fmt.Fprintf(&b, "%12v – %12v  %d %s %s%s %s -> %d %s %s %v\n", time.Duration(op.Call), time.Duration(op.Return),
			op.ClientId, in.what, in.key, in.job, in.value+in.token,
			out.status, out.job+out.token, out.state, slices.Sorted(maps.Values(out.shared)))
	}
	return b.String()
}
