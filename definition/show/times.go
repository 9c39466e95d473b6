package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Times holds the retries and time limits of a node, including defaults of the flow and its
// profile.
type Times struct {
	Attempts           int     `json:"attempts,omitempty"` // attempts per unit, if more than one
	WaitMS             int64   `json:"wait_ms,omitempty"`  // wait before the second attempt
	MaxWaitMS          int64   `json:"max_wait_ms,omitempty"`
	Exponential        bool    `json:"exponential,omitempty"` // each wait is twice the previous one
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

// timeNotes returns the settings as text.
func (v Times) timeNotes() []string {
	return nonEmpty(withPrefix("begins later by ", durationText(v.StartDelayMS)), v.triesText(),
		withPrefix("at most ", durationText(v.TimeoutMS)),
		withPrefix("to be claimed within ", durationText(v.StartTimeoutMS)),
		withPrefix("silent at most ", durationText(v.HeartbeatTimeoutMS)))
}

func (v Times) triesText() string {
	if v.Attempts == 0 {
		return ""
	}
	wait := durationText(v.WaitMS)
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
	return strings.Join(nonEmpty(fmt.Sprintf("%d attempts", v.Attempts), wait,
		withPrefix("up to ", durationText(v.MaxWaitMS)), jitter), ", ")
}

// durationText returns a duration without trailing zero parts; "" for 0.
func durationText(ms int64) string {
	if ms == 0 {
		return ""
	}
	d := flow.Milliseconds(ms)
	if d.Milliseconds() < ms { // too long for a Duration
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
