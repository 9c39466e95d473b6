package actors

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// reserveFactor multiplies the bounds for commands that free capacity. Reports, heartbeats and
// cancels are how a member at its limit gets below it again.
const reserveFactor = 4

// errFull is the answer to new work while the member is at its limit of waiting work.
var errFull = flow.Errorf(flow.Busy, "the member is at its limit of waiting work: try again in a moment")

// admitCommand returns nil if the member has room for the command, else the error for the caller.
func (m *Member) admitCommand(cmd flow.Command) error {
	if err := m.checkAvailable(); err != nil {
		return err
	}
	if b, is := cmd.(flow.Bring); is && !m.mayCarry(b.Carrier) {
		return errUnknownCarrier
	}
	bound, bytes := int64(m.cfg.MaxUncommitted), int64(m.cfg.MaxWaiting)
	switch {
	case freesCapacity(cmd):
		bound, bytes = reserveFactor*bound, reserveFactor*bytes
	case m.ready.Load() > int64(m.cfg.MaxReady):
		return errFull
	}
	if m.uncommitted.Load() > bound || m.messages.Load() > bound || m.waitingBytes.Load() > bytes {
		return errFull
	}
	return nil
}

// freesCapacity reports whether a command frees something, or keeps running work from being
// repeated.
func freesCapacity(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Report, flow.Extend, flow.GiveBack, flow.Note, flow.Cancel, flow.Pause, flow.Begin,
		flow.Working, flow.Inquire, flow.Granted, flow.Evict, flow.Bring:
		return true
	}
	return false
}

// trackRequest counts a request until its answer comes, even when the caller no longer waits for
// it.
func (m *Member) trackRequest(cmd flow.Command, reply func(commandAnswer)) func(commandAnswer) {
	bytes := int64(bytesOf(cmd))
	m.messages.Add(1)
	m.waitingBytes.Add(bytes)
	return func(a commandAnswer) {
		m.messages.Add(-1)
		m.waitingBytes.Add(-bytes)
		reply(a)
	}
}

// bytesOf returns the size of a command's values.
func bytesOf(cmd flow.Command) int {
	switch c := cmd.(type) {
	case flow.Start:
		return len(c.Params)
	case flow.Signal:
		return len(c.Value)
	case flow.Answer:
		return len(c.Value)
	case flow.Report:
		return len(c.Output) + len(c.Error)
	case flow.Append:
		return bytesOfAll(c.Items)
	}
	return 0
}

func bytesOfAll(values []json.RawMessage) (sum int) {
	for _, v := range values {
		sum += len(v)
	}
	return sum
}
