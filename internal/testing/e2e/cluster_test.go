package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/errands"
	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/internal/testing/process"
)

// members are the members of one cluster; the client of the stage uses them alternately.
type members struct {
	*stage
	addresses []string
	processes []*process.Process
}

// together starts a cluster.
func (s *stage) together(n int) *members {
	m := &members{stage: s, addresses: make([]string, n), processes: make([]*process.Process, n)}
	bases := make([]string, n)
	for i := range n {
		m.addresses[i] = freeAddress(s.t)
		bases[i] = "http://" + m.addresses[i]
		m.start(i)
	}
	for i := range n {
		s.readyAt(m.processes[i], m.addresses[i])
	}
	s.client.HTTP.CloseIdleConnections()
	s.client = errands.NewClient(bases...)
	return m
}

func (m *members) start(i int) {
	m.processes[i] = m.serve(fmt.Sprintf("member-%d", i), m.addresses[i])
}

// at makes the workers started by hire know only one member.
func (m *members) at(i int, hire func()) {
	m.base = "http://" + m.addresses[i]
	hire()
}

// killOneOfThree kills a member while the others work, and restarts it. Other workers take over the
// work of its workers.
func killOneOfThree(t *testing.T, p *plan) {
	begun, s := time.Now(), newStage(t, pgtest.DSN(t))
	s.visibility = shortVisibility
	m := s.together(3)
	require.NoError(t, errands.PublishAll(t.Context(), m.client))
	known := [][]string{{"push-1", "attached-1", "demo-push", "demo-pull"}, {"pull-1", "push-2"}, {"pull-2", "attached-2"}}
	for i, names := range known {
		m.at(i, func() {
			for _, name := range names {
				m.hire(name)
			}
		})
	}
	m.await("push-1", "push-2", "pull-1", "pull-2", "demo-push", "demo-pull")
	e := m.storm(p.tasks, 3, func(wave int) {
		time.Sleep(time.Second)
		switch wave {
		case 0:
			m.processes[2].Kill()
		case 1:
			m.start(2)
		}
	})
	m.finishAll(p, e, begun)
}

// finishAll is finish for all members.
func (m *members) finishAll(p *plan, e ended, begun time.Time) {
	for _, member := range m.processes[1:] {
		require.NoError(m.t, member.Stop(patience))
	}
	m.member = m.processes[0]
	m.tell("kill of a member of three", 1, begun, m.finish(p, e))
}
