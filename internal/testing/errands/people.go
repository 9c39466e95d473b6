package errands

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/flow"
)

// Errand is a task to be run by a simulated user: its params, and the actions of the user
// meanwhile.
type Errand struct {
	Key     string // idempotency key, also of its actions
	Flow    string
	Params  map[string]any
	delay   time.Duration // before the start
	actions []userAction
	twice   bool // the start is repeated after its acknowledgement
}

// userAction is an action of a user, some time after the previous one.
type userAction struct {
	after time.Duration
	verb  string // signal, pause, resume, cancel, complete or append
	key   string // key of a signal or a step
	value any
}

// Outcome is the result of a task.
type Outcome struct{ State, Error, Shared string }

// flows are the files in the folder flows used by errands. The index of an errand selects its flow,
// so that even few errands cover all flows.
var flows = []string{"approval", "attached", "boxes", "canceled", "chain", "choice", "demo", "desk",
	"diamond", "event", "failing", "items", "keyed", "loop",
	"mixed", "nested", "outside", "paused", "places", "programs", "python", "regret", "retries", "rooms", "saga", "silence", "timers"}

//go:embed flows
var definitions embed.FS

// PublishAll publishes the flows of all errands, the flows of schedules, and the flow held, whose
// job some workers never finish.
func PublishAll(ctx context.Context, c *Client) error {
	files, err := definitions.ReadDir("flows")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := definitions.ReadFile("flows/" + file.Name())
		if err != nil {
			return err
		}
		if err := c.Publish(ctx, strings.TrimSuffix(file.Name(), ".yaml"), text); err != nil {
			return err
		}
	}
	return nil
}

// boxesEvery reduces the share of container flows in favor of programs, because a container host is
// a hundred times slower than anything else here.
const boxesEvery = 3

// Draw draws n errands; the same seed gives the same errands.
func Draw(seed uint64, n int) []Errand {
	rng := rand.New(rand.NewPCG(seed, 0))
	list := make([]Errand, n)
	for i := range list {
		items := make([]int, rng.IntN(9))
		for k := range items {
			items[k] = rng.IntN(100)
		}
		name, key, number := flows[i%len(flows)], fmt.Sprintf("errand-%d", i), rng.IntN(100)
		if name == "python" && !hasPython() || name == "boxes" && (containerHost() == "" || i/len(flows)%boxesEvery > 0) {
			name = "programs"
		}
		list[i] = Errand{
			Key: key, Flow: name, Params: map[string]any{"n": number, "list": items, "group": number % 3, "errand": key},
			delay: drawDelay(rng), actions: drawActions(rng, name), twice: rng.IntN(4) == 0,
		}
	}
	return list
}

// Sample returns an errand of sequential slow jobs. When it is done, other tasks have had enough
// time, too.
func Sample(i int) Errand {
	return Errand{Key: fmt.Sprintf("sample-%d", i), Flow: "chain", Params: map[string]any{"n": i}}
}

func drawDelay(rng *rand.Rand) time.Duration { return time.Duration(rng.IntN(600)) * time.Millisecond }

func drawActions(rng *rand.Rand, flow string) []userAction {
	send := func(key string, value any) userAction { return userAction{drawDelay(rng), "signal", key, value} }
	do := func(verb string) userAction { return userAction{after: drawDelay(rng), verb: verb} }
	switch flow {
	case "approval":
		return []userAction{send("decision", rng.IntN(3) > 0)}
	case "event":
		return []userAction{send("first", 1+rng.IntN(50)), send("second", 1+rng.IntN(50))}
	case "paused":
		return []userAction{do("pause"), send("go", 1+rng.IntN(50)), do("resume")}
	case "canceled":
		return []userAction{do("cancel")}
	case "desk":
		finish := func(step string, unit int) userAction {
			return userAction{drawDelay(rng), "complete", step, map[string]any{"unit": unit, "output": rng.IntN(50)}}
		}
		items := userAction{drawDelay(rng), "append", "desk", map[string]any{"items": []int{1, 2}}}
		return []userAction{finish("desk", 1), items, finish("desk", 3), finish("sign", 0), finish("desk", 0), finish("desk", 2)}
	case "regret":
		return []userAction{{drawDelay(rng), "complete", "book", map[string]any{"output": rng.IntN(50)}}, do("cancel")}
	}
	return nil
}

// requestBody returns the body of an action's request.
func (a *userAction) requestBody() any {
	switch body, _ := a.value.(map[string]any); a.verb {
	case "signal":
		return map[string]any{"key": a.key, "value": a.value}
	case "complete", "append":
		body = maps.Clone(body)
		body["step"] = a.key
		return body
	}
	return nil
}

// Run runs an errand. Each request is repeated until it is acknowledged, with a key that makes it
// effective only once.
func (e *Errand) Run(ctx context.Context, c *Client) (task string, end Outcome, err error) {
	sleepContext(ctx, e.delay)
	started, err := c.Start(ctx, e.Key, e.Flow, e.Params)
	if err != nil {
		return "", end, err
	}
	if e.twice {
		again, err := c.Start(ctx, e.Key, e.Flow, e.Params)
		if err != nil || again.ID != started.ID || again.Created {
			return started.ID, end, fmt.Errorf("started again, %s was answered as %+v, %w", started.ID, again, err)
		}
	}
	for i, a := range e.actions {
		sleepContext(ctx, a.after)
		if err := c.Do(ctx, started.ID, a.verb, fmt.Sprintf("%s-%d", e.Key, i), a.requestBody()); err != nil {
			return started.ID, end, err
		}
	}
	got, err := c.End(ctx, started.ID)
	return started.ID, outcomeOf(got), err
}

func outcomeOf(t wire.Task) Outcome {
	return newOutcome(t.State, t.Error, (&flow.Scope{Shared: t.Shared}).SharedJSON(), t.Mode == "dag", t.Result)
}

// newOutcome returns an outcome. For a completed dag the outcome includes the result, because the
// shared values reveal little about the course of the task.
func newOutcome(state, text string, shared []byte, dag bool, result []byte) Outcome {
	o := Outcome{state, text, string(shared)}
	if dag && state == "completed" {
		o.Shared += " " + string(result)
	}
	return o
}

func sleepContext(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
