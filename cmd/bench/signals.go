//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// After the pause, a signal finds the task parked.
const (
	signalsIdle  = 100 * time.Millisecond
	signalsPause = 400 * time.Millisecond
)

// idleAfter is how long a waiting task stays in memory; 0 means the default.
func (o benchOptions) idleAfter() time.Duration {
	if o.workload == "signals" {
		return signalsIdle
	}
	return 0
}

// measureSignals sends values of about 0.8 MB to a task that waits for another signal, then tiny
// signals while the task is parked. It then reads the task. Times are measured by a client. The CPU
// time is the time of this process, including client and member.
func (b *benchRun) measureSignals() error {
	if err := b.publishFlow("signals", `
start: wait
nodes:
  wait: {kind: approval, params: {approval_key: $shared.ok}}
`); err != nil {
		return err
	}
	if err := b.serveAPI(b.ctx); err != nil {
		return err
	}
	id, err := b.startTask("signals", nil)
	if err != nil {
		return err
	}
	task := b.url + "/v1/tasks/" + id
	large, tiny := largeSignal(), []byte(`{"key":"tiny","value":1}`)
	// so that the member's basic memory is allocated before
	if err := b.sendRequest(http.MethodPost, task+"/signal", large); err != nil {
		return err
	}
	m, err := b.startMeter()
	if err != nil {
		return err
	}
	largeMS, err := b.medianTime(b.o.n, 0, func() error { return b.sendRequest(http.MethodPost, task+"/signal", large) })
	if err != nil {
		return err
	}
	if err := m.finishMeter(1, b.o.n); err != nil {
		return err
	}
	tinyMS, err := b.medianTime(b.o.n, signalsPause, func() error { return b.sendRequest(http.MethodPost, task+"/signal", tiny) })
	if err != nil {
		return err
	}
	readMS, err := b.medianTime(b.o.n, 0, func() error { return b.sendRequest(http.MethodGet, task, nil) })
	if err != nil {
		return err
	}
	b.result.P50MS = largeMS
	b.result.Extra = map[string]float64{"value_bytes": float64(len(large)), "cpu_ms_per_large_signal": b.result.CPUPerStep / 1000,
		"tiny_signal_to_parked_p50_ms": tinyMS, "read_p50_ms": readMS}
	return nil
}

// largeSignal returns a signal whose value is a list of 30,000 small objects.
func largeSignal() []byte {
	list := make([]map[string]any, 30_000)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprint("x", i), "n": i}
	}
	text, err := json.Marshal(map[string]any{"key": "large", "value": map[string]any{"list": list}})
	if err != nil { // maps of strings and numbers can always be encoded
		panic(err)
	}
	return text
}

// medianTime calls do n times, with a pause before each call, and returns the median time in
// milliseconds.
func (b *benchRun) medianTime(n int, pause time.Duration, do func() error) (float64, error) {
	var seen latencySamples
	for range n {
		time.Sleep(pause)
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		seen.addSample(time.Since(began))
	}
	slices.Sort(seen.list)
	return toMillis(seen.list[n/2]), nil
}

func (b *benchRun) sendRequest(method, url string, body []byte) error {
	req, err := http.NewRequestWithContext(b.ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, answer)
	}
	return err
}
