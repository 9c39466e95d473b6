package flow

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClaimIsKeptByAWorkerThatLivesAndHasIt(t *testing.T) {
	const claimed, until = int64(1_000), int64(2_000)
	for name, tt := range map[string]struct {
		signs Signs
		note  string
		keeps bool
	}{
		"heard of just now":                     {Signs{Heard: 1_900}, "", true},
		"heard of too long ago":                 {Signs{Heard: 900}, "", false},
		"unknown":                               {Signs{}, "", false},
		"it began anew":                         {Signs{Heard: 1_900, Joined: 1_500}, "running", false},
		"it was there before":                   {Signs{Heard: 1_900, Joined: 500}, "", true},
		"the poll that gave it the job":         {Signs{Heard: 1_900, Polled: 990}, "", true},
		"it asks for others and never noted it": {Signs{Heard: 1_900, Polled: 1_500}, "", false},
		"it asks for others and has noted it":   {Signs{Heard: 1_900, Polled: 1_500}, "running", true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := compiled(t, `{"start":"a","nodes":{"a":{"exec_type":"queue","service":"s"}}}`)
			s := NewState("t", plan)
			at := Address{Node: "a", Visit: 1, Attempt: 1}
			do := func(now int64, c Command) {
				_, err := Decide(s, c, Env{Now: now})
				require.NoError(t, err)
			}
			do(900, Start{Version: "v"})
			do(claimed, Claim{Address: at, Worker: "w", Token: "x", Until: until})
			if tt.note != "" {
				do(claimed+1, Note{Address: at, Text: tt.note})
			}
			do(until, Lapse{Alarm: Alarm{At: until, Address: at, Kind: AlarmClaim}, Signs: tt.signs, Visibility: 1_000})
			require.Equal(t, tt.keeps, s.Holds(at, "x"))
			if tt.keeps {
				require.Equal(t, tt.signs.Heard+1_000, s.Live(at).Until)
			}
		})
	}
}
