package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence/model"
)

// A claim is refused because somebody else holds the job, and before the answer is there the job is returned: nobody offers it again.
func TestAJobThatIsReturnedWhileItsClaimIsRefusedIsOffered(t *testing.T) {
	m, err := Start(t.Context(), Config{Store: model.New(model.Options{})})
	require.NoError(t, err)
	t.Cleanup(m.Kill)
	for name, returned := range map[string]bool{"returned meanwhile": true, "still held": false} {
		t.Run(name, func(t *testing.T) {
			q, r := newQueue(m), &ref{key: jobKey{"task", flow.Address{Node: "a", Visit: 1, Attempt: 1}}, service: "x"}
			p := newPoller(engine.Poll{Services: []string{"x"}}, nil)
			p.take(r)
			q.claims[r.key] = nil
			if returned {
				q.offer(nil, r)
			}
			require.Empty(t, q.refs)
			q.answered(nil, claimAnswered{poller: p, ref: r, Outcome: engine.Outcome{Err: flow.Errorf(flow.Conflict, "the job is claimed by another worker")}})
			require.Equal(t, returned, q.refs[r.key] != nil)
		})
	}
}
