package actors

import "github.com/troupe-engine/troupe/flow"

// Liveness tracks the workers that send one heartbeat for all their jobs.
type Liveness interface {
	// Polled records that a worker has polled for jobs.
	Polled(worker string)
	// Signs returns the known signs of life of a worker, or the zero value if the worker is
	// unknown.
	Signs(worker string) flow.Signs
	// Pushed returns the services that push workers offer, including workers that are not alive.
	Pushed() []string
}

// workerJoinedAt returns when a worker registered, in Unix milliseconds; 0 if this member does not
// know it.
func (m jobCarrying) workerJoinedAt(worker string) int64 {
	if m.cfg.Workers == nil {
		return 0
	}
	return m.cfg.Workers.Signs(worker).Joined
}

// withSigns adds data that the core cannot know to a command. An expired claim gets the signs of
// life of its worker. A recovery of jobs of a departed member gets the list of live members.
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
