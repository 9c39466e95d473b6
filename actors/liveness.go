package actors

import "github.com/troupe-engine/troupe/flow"

// Liveness knows the workers that send heartbeats for themselves instead of for each of their jobs.
type Liveness interface {
	// Polled records that a worker has polled for jobs.
	Polled(worker string)
	// Signs returns what is known of a worker; the zero value if it is unknown.
	Signs(worker string) flow.Signs
	// Pushed returns the services that push workers offer, whether those workers are alive or not.
	Pushed() []string
}

// workerJoinedAt returns when a worker registered, as far as this member knows.
func (m jobCarrying) workerJoinedAt(worker string) int64 {
	if m.cfg.Workers == nil {
		return 0
	}
	return m.cfg.Workers.Signs(worker).Joined
}

// withSigns completes a command for the core. An expired claim needs what is known of its worker.
// The recovery of jobs left with workers of a departed member needs the members that are alive now.
func (t *task) withSigns(cmd flow.Command) flow.Command {
	ring, ok := cmd.(flow.Ring)
	switch {
	case ok && ring.Kind == flow.AlarmReturn:
		return t.m.peers.recoverCommand(t.id)
	case !ok || ring.Kind != flow.AlarmClaim || t.m.cfg.Workers == nil:
		return cmd
	}
	lapse := flow.Lapse{Alarm: ring.Alarm, Visibility: t.m.cfg.Visibility.Milliseconds()}
	if live := t.state.Live(ring.Address); live != nil {
		lapse.Signs = t.m.cfg.Workers.Signs(live.Worker)
	}
	return lapse
}
