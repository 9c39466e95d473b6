package actors

import "github.com/troupe-engine/troupe/flow"

// Liveness knows the workers that tell of their lives, which some do instead of telling of each job
// they have.
type Liveness interface {
	// Polled notes that a worker has asked for jobs.
	Polled(worker string)
	// Signs are what is known of a worker; none of one that nobody knows.
	Signs(worker string) flow.Signs
	// Pushed are the services that push workers offer, whether they live or not.
	Pushed() []string
}

// workerJoinedAt is when a worker registered, as far as this member knows.
func (m *Member) workerJoinedAt(worker string) int64 {
	if m.cfg.Workers == nil {
		return 0
	}
	return m.cfg.Workers.Signs(worker).Joined
}

// withSigns is a command as the core needs it: to a claim that has run out belongs what is known of
// its worker, and to jobs that were left to workers whose member has gone, which members are alive
// by now.
func (t *task) withSigns(cmd flow.Command) flow.Command {
	ring, ok := cmd.(flow.Ring)
	switch {
	case ok && ring.Kind == flow.AlarmReturn:
		return t.m.recoverCommand(t.id)
	case !ok || ring.Kind != flow.AlarmClaim || t.m.cfg.Workers == nil:
		return cmd
	}
	lapse := flow.Lapse{Alarm: ring.Alarm, Visibility: t.m.cfg.Visibility.Milliseconds()}
	if live := t.state.Live(ring.Address); live != nil {
		lapse.Signs = t.m.cfg.Workers.Signs(live.Worker)
	}
	return lapse
}
