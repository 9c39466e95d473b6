package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"time"
)

// Now returns the time and records it.
func (b *Branch) Now() (at time.Time, err error) {
	raw, err := b.doStep(Now, "now", Options{}, func(context.Context) (json.RawMessage, error) { return json.Marshal(b.c.host.Now()) })
	if err == nil {
		err = json.Unmarshal(raw, &at)
	}
	return at, err
}

// Version records the newest version, or returns the recorded one. If the history is older than the
// call, it returns the least version.
func (b *Branch) Version(name string, least, newest int) (int, error) {
	if b.IsReplaying() {
		if next := b.history[b.at]; next.Kind != Version || next.Name != b.path+name {
			return least, nil
		}
	}
	raw, err := b.doStep(Version, name, Options{}, func(context.Context) (json.RawMessage, error) {
		return json.RawMessage(strconv.Itoa(newest)), nil
	})
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(raw))
	if err == nil && (n < least || n > newest) {
		b.c.haltFunction(Outcome{Held: fmt.Sprintf("nondeterministic: at step %s the history has version %d, the code knows %d to %d",
			b.path+name, n, least, newest)})
	}
	return n, err
}

// Set records a value that clients can read in the state of the task.
func (b *Branch) Set(key string, value json.RawMessage) error {
	_, err := b.doStep(Set, key, Options{}, func(context.Context) (json.RawMessage, error) { return value, nil })
	return err
}

// Restart ends the calling goroutine. The function begins anew with an input, without its recorded
// steps and undos. Only the main branch may restart.
func (b *Branch) Restart(input json.RawMessage) {
	if b != b.c.main {
		panic("durable: a branch cannot restart the function")
	}
	b.checkGoing()
	b.c.nextInput = input
	runtime.Goexit()
}

// endWithRestart ends a function that begins anew, after its deferred calls have run.
func (b *Branch) endWithRestart() {
	switch {
	case b.c.nextInput == nil || b.c.undoes:
	case b.IsReplaying():
		was := b.history[b.at]
		b.c.stopFunction(Outcome{Held: fmt.Sprintf("nondeterministic: at step %s the history has %s, the code began anew",
			was.Place(), was.describeStep())})
	default:
		b.c.ended <- Outcome{Output: b.c.nextInput, Restarts: true}
	}
}

// Key returns a text that identifies the branch among the branches of all tasks, equal in every
// replay.
func (b *Branch) Key() string { return b.c.job.Key() + "/" + b.path }
