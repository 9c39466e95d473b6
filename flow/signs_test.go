package flow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

func TestAClaimIsKeptByALiveWorkerThatHasTheJob(t *testing.T) {
	const claimed, until = int64(1_000), int64(2_000)
	for name, tt := range map[string]struct {
		signs flow.Signs
		note  string
		keeps bool
	}{
		"heard of just now":                     {flow.Signs{Heard: 1_900}, "", true},
		"heard of too long ago":                 {flow.Signs{Heard: 900}, "", false},
		"unknown":                               {flow.Signs{}, "", false},
		"it began anew":                         {flow.Signs{Heard: 1_900, Joined: 1_500}, "running", false},
		"it was there before":                   {flow.Signs{Heard: 1_900, Joined: 500}, "", true},
		"the poll that gave it the job":         {flow.Signs{Heard: 1_900, Polled: 990}, "", true},
		"it asks for others and never noted it": {flow.Signs{Heard: 1_900, Polled: 1_500}, "", false},
		"it asks for others and has noted it":   {flow.Signs{Heard: 1_900, Polled: 1_500}, "running", true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"s"}}}`)
			s := flow.NewState("t", plan)
			at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
			do := func(now int64, c flow.Command) {
				_, err := flow.Decide(s, c, flow.Env{Now: now})
				require.NoError(t, err)
			}
			do(900, flow.Start{Version: "v"})
			do(claimed, flow.Claim{Address: at, Worker: "w", Token: "x", Until: until})
			if tt.note != "" {
				do(claimed+1, flow.Note{Address: at, Text: tt.note})
			}
			require.Equal(t, claimed, s.Live(at).ClaimedAt)
			do(until, flow.Lapse{Alarm: flow.Alarm{At: until, Address: at, Kind: flow.AlarmClaim}, Signs: tt.signs, Visibility: 1_000})
			require.Equal(t, tt.keeps, s.Holds(at, "x"))
			if tt.keeps {
				require.Equal(t, tt.signs.Heard+1_000, s.Live(at).Until)
			}
		})
	}
}

// TestAClaimIsNotEarlierThanItsRequest covers members whose clocks lag behind the time of the store
// by different amounts.
func TestAClaimIsNotEarlierThanItsRequest(t *testing.T) {
	const registered, until = int64(1_100), int64(2_000) // at another member
	for name, tt := range map[string]struct {
		joined int64
		keeps  bool
	}{"the registration that it came after": {registered, true}, "a later one": {registered + 1, false}} {
		t.Run(name, func(t *testing.T) {
			s := flow.NewState("t", flowtest.Plan(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"s"}}}`))
			at := flow.Address{Node: "a", Visit: 1, Attempt: 1}
			do := func(now int64, c flow.Command) {
				_, err := flow.Decide(s, c, flow.Env{Now: now})
				require.NoError(t, err)
			}
			do(900, flow.Start{Version: "v"})
			do(1_000, flow.Claim{Address: at, Worker: "w", Token: "x", Since: registered, Until: until})
			require.Equal(t, registered, s.Live(at).ClaimedAt)
			do(until, flow.Lapse{Alarm: flow.Alarm{At: until, Address: at, Kind: flow.AlarmClaim},
				Signs: flow.Signs{Heard: 1_900, Joined: tt.joined, Polled: registered}, Visibility: 1_000})
			require.Equal(t, tt.keeps, s.Holds(at, "x"))
		})
	}
}
