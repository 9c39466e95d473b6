package actors_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/actors"
)

// order polls for one job after another and returns their steps and units.
func (th *harness) order(t *testing.T, n int, services ...string) string {
	t.Helper()
	places := make([]string, n)
	for i := range places {
		got := th.poll(t, patience, 1, services...)
		require.Len(t, got, 1)
		places[i] = fmt.Sprint(got[0].Job.Node, got[0].Job.Unit)
	}
	return strings.Join(places, " ")
}

func units(n int) (places string) {
	for i := range n {
		places += fmt.Sprint(" each", i)
	}
	return places[1:]
}

const unorderedSteps = `{"mode":"dag","nodes":{"z":{"exec_type":"queue","service":"s"},"m":{"exec_type":"queue","service":"s"},
	"a":{"exec_type":"queue","service":"s"},"k":{"exec_type":"queue","service":"s"},"b":{"exec_type":"queue","service":"s"}}}`

func TestJobsOfTheSameTimeAreHandedOutInDefinitionOrder(t *testing.T) {
	list := `{"list":[` + strings.Repeat("1,", 24) + `1]}`
	for name, restart := range map[string]bool{"from memory": false, "from the store": true} {
		t.Run(name, func(t *testing.T) {
			th := start(t, actors.Config{IdleAfter: 20 * time.Millisecond})
			th.begin(t, th.publish(t, queueOverAList), list)
			th.begin(t, th.publish(t, unorderedSteps), `{}`)
			if restart {
				th.eventuallyEmpty(t)
				th = th.again(t, actors.Config{})
			}
			require.Equal(t, units(25), th.order(t, 25, "x"))
			require.Equal(t, "z0 m0 a0 k0 b0", th.order(t, 5, "s"))
		})
	}
}
