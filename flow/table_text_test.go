package flow_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/expr"
)

func compact(t require.TestingT, row []byte) string {
	var b bytes.Buffer
	require.NoError(t, json.Compact(&b, row))
	return b.String()
}

func effectTexts(effects []flow.Effect) []string {
	var texts []string
	for _, e := range effects {
		texts = append(texts, effectText(e))
	}
	return texts
}

var alarmNames = map[flow.AlarmKind]string{flow.AlarmTask: "task", flow.AlarmStep: "step",
	flow.AlarmEnter: "enter", flow.AlarmAttempt: "attempt", flow.AlarmClaim: "claim",
	flow.AlarmRetry: "retry", flow.AlarmStart: "start", flow.AlarmUnclaimed: "unclaimed"}

func effectText(e flow.Effect) string {
	switch e := e.(type) {
	case flow.Dispatch:
		return dispatchText(&e.Job)
	case flow.Reclaim:
		return "reclaim " + e.Job.Address.String()
	case flow.Over:
		return "over " + e.Address.String()
	case flow.Lost:
		return "lost " + e.Address.String()
	case flow.Withdraw:
		return "withdraw " + e.Address.String() + quoted(" carrier=", e.Carrier)
	case flow.WaitEnded:
		return fmt.Sprintf("wait ended %s given=%d %s", e.Address, e.Given, e.Step.Place()) + quoted(" carrier=", e.Carrier)
	case flow.Alarm:
		return fmt.Sprintf("alarm %s %s %s", alarmNames[e.Kind], e.Address, clockText(e.At))
	case flow.Ask:
		return fmt.Sprintf("ask %s %+v %s", e.Address, e.Permit, clockText(e.AskedAt))
	case flow.Held:
		return "held " + e.Address.String() + " " + e.Key
	case flow.Release:
		return "release " + e.Address.String() + " " + e.Key
	case flow.Spawn:
		return "spawn " + e.Address.String()
	case flow.Prune:
		return "prune " + e.Address.String()
	case flow.Track:
		return fmt.Sprintf("track %s %d", e.Address, len(e.Jobs))
	case flow.Untrack:
		return fmt.Sprintf("untrack %s %d", e.Address, e.Index)
	case flow.Recall:
		return fmt.Sprintf("recall %s %v", e.Address, e.Indexes)
	case flow.Adrift:
		return fmt.Sprintf("adrift %s %d", e.Jobs[0].Job, len(e.Jobs))
	case flow.Ended:
		return "ended " + string(e.Status)
	}
	panic(fmt.Sprintf("effect %T has no text", e))
}

func dispatchText(j *flow.Job) string {
	var b strings.Builder
	if j.Exec == nil {
		return "no dispatch"
	}
	fmt.Fprintf(&b, "dispatch %s %s:%s", j.Address, j.Exec.Type, j.Exec.Service+j.Exec.Func)
	if j.Branch != "" {
		fmt.Fprintf(&b, " branch=%s", j.Branch)
	}
	fmt.Fprintf(&b, " input=%s", oneLine(j.Input))
	if string(j.Params) != "{}" {
		fmt.Fprintf(&b, " params=%s", oneLine(j.Params))
	}
	if j.TimeoutMS > 0 {
		fmt.Fprintf(&b, " timeout=%dms", j.TimeoutMS)
	}
	if j.Again && j.Exec.Type != flow.ExecQueue {
		b.WriteString(" again")
	}
	if j.Deliveries > 0 {
		fmt.Fprintf(&b, " deliveries=%d", j.Deliveries)
	}
	return b.String()
}

func oneLine(v json.RawMessage) string {
	if c := expr.Compact(v); c != nil {
		return string(c)
	}
	return strconv.Quote(string(v))
}

// clockText returns a time relative to the start of the test.
func clockText(at int64) string { return fmt.Sprintf("%+d", at-epoch) }
