package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Times is how often a node is tried and how long it may take, defaults of the flow and its profile included.
type Times struct {
	Attempts           int     `json:"attempts,omitempty"` // of each unit, if it is more than one
	WaitMS             int64   `json:"wait_ms,omitempty"`  // before the second one
	MaxWaitMS          int64   `json:"max_wait_ms,omitempty"`
	Exponential        bool    `json:"exponential,omitempty"` // each wait is twice the one before
	Jitter             float64 `json:"jitter,omitempty"`
	TimeoutMS          int64   `json:"timeout_ms,omitempty"`
	StartDelayMS       int64   `json:"start_delay_ms,omitempty"`
	StartTimeoutMS     int64   `json:"start_timeout_ms,omitempty"`
	HeartbeatTimeoutMS int64   `json:"heartbeat_timeout_ms,omitempty"`
}

func timesOf(n *flow.PlanNode) Times {
	v := Times{TimeoutMS: n.TimeoutMS, StartTimeoutMS: n.Exec.StartMS, HeartbeatTimeoutMS: n.Exec.HeartbeatMS}
	if n.Dag != nil {
		v.StartDelayMS = n.Dag.StartDelayMS
	}
	if r := n.Retry; r.Max > 0 && n.Exec.Type != flow.ExecDirect {
		v.Attempts, v.WaitMS, v.MaxWaitMS, v.Exponential, v.Jitter = r.Max+1, r.WaitMS, r.MaxWaitMS, r.Exponential, r.Jitter
	}
	return v
}

// notes is that for people.
func (v Times) notes() []string {
	return nonEmpty(prefixed("begins later by ", span(v.StartDelayMS)), v.tries(), prefixed("at most ", span(v.TimeoutMS)),
		prefixed("to be claimed within ", span(v.StartTimeoutMS)), prefixed("silent at most ", span(v.HeartbeatTimeoutMS)))
}

func (v Times) tries() string {
	if v.Attempts == 0 {
		return ""
	}
	wait := span(v.WaitMS)
	switch {
	case wait != "" && v.Exponential:
		wait += " apart, doubling"
	case wait != "":
		wait += " apart"
	}
	jitter := ""
	if v.Jitter > 0 {
		jitter = fmt.Sprintf("jitter %g", v.Jitter)
	}
	return strings.Join(nonEmpty(fmt.Sprintf("%d attempts", v.Attempts), wait, prefixed("up to ", span(v.MaxWaitMS)), jitter), ", ")
}

// span is a time without the zeros at its end; "" for none.
func span(ms int64) string {
	if ms == 0 {
		return ""
	}
	d := flow.Milliseconds(ms)
	if d.Milliseconds() < ms { // no Duration is as long
		return fmt.Sprintf("%dh", ms/time.Hour.Milliseconds())
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
