package actors

import (
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// reserveFactor multiplies the bounds for commands that free capacity. A member at its limit still
// accepts reports, heartbeats and cancels, because these reduce its waiting work.
const reserveFactor = 4

// errFull is the answer to new work while the member is at its limit of waiting work.
var errFull = flow.Errorf(flow.Busy, "the member is at its limit of waiting work: try again in a moment")

// admitCommand returns nil if the member has room for the command, else the error for the caller.
func (m memberRequests) admitCommand(cmd flow.Command) error {
	if err := m.checkAvailable(); err != nil {
		return err
	}
	if b, is := cmd.(flow.Bring); is && !m.peers.mayCarry(b.Carrier) {
		return errUnknownCarrier
	}
	bound, bytes := int64(m.cfg.MaxUncommitted), int64(m.cfg.MaxWaiting)
	switch {
	case freesCapacity(cmd):
		bound, bytes = reserveFactor*bound, reserveFactor*bytes
	case m.counts.ready.Load() > int64(m.cfg.MaxReady):
		return errFull
	}
	if m.counts.uncommitted.Load() > bound || m.counts.messages.Load() > bound || m.counts.waitingBytes.Load() > bytes {
		return errFull
	}
	return nil
}

// freesCapacity reports whether a command frees capacity, or prevents running work from being
// repeated.
func freesCapacity(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Report, flow.Extend, flow.GiveBack, flow.Note, flow.Cancel, flow.Pause, flow.Begin,
		flow.Working, flow.Inquire, flow.Granted, flow.Evict, flow.Bring, flow.RecordSteps, flow.ReleaseFunction:
		return true
	}
	return false
}

// trackRequest counts a request until its answer comes, even when the caller no longer waits for
// it.
func (m memberRequests) trackRequest(cmd flow.Command, reply func(commandAnswer)) func(commandAnswer) {
	bytes := int64(engine.BytesOf(cmd))
	m.counts.messages.Add(1)
	m.counts.waitingBytes.Add(bytes)
	return func(a commandAnswer) {
		m.counts.messages.Add(-1)
		m.counts.waitingBytes.Add(-bytes)
		reply(a)
	}
}
