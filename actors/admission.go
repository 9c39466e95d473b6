package actors

import (
	"encoding/json"

	"github.com/troupe-engine/troupe/flow"
)

// reserve is how many times the bounds what frees work may go to: reports, heartbeats and cancels are how a member at
// its limit gets below it again.
const reserve = 4

// errFull is the answer to new work while too much is waiting.
var errFull = flow.Errorf(flow.Busy, "the member is at its limit of waiting work: try again in a moment")

// admit lets in what a member has room for.
func (m *Member) admit(cmd flow.Command) error {
	if err := m.here(); err != nil {
		return err
	}
	if b, is := cmd.(flow.Bring); is && !m.mayCarry(b.Carrier) {
		return errUnknownCarrier
	}
	bound, bytes := int64(m.cfg.MaxUncommitted), int64(m.cfg.MaxWaiting)
	switch {
	case frees(cmd):
		bound, bytes = reserve*bound, reserve*bytes
	case m.ready.Load() > int64(m.cfg.MaxReady):
		return errFull
	}
	if m.uncommitted.Load() > bound || m.messages.Load() > bound || m.waitingBytes.Load() > bytes {
		return errFull
	}
	return nil
}

// frees says whether a command lets go of something, or keeps what is under way from being done again.
func frees(cmd flow.Command) bool {
	switch cmd.(type) {
	case flow.Report, flow.Extend, flow.GiveBack, flow.Note, flow.Cancel, flow.Pause, flow.Begin, flow.Working, flow.Inquire, flow.Granted, flow.Evict, flow.Bring:
		return true
	}
	return false
}

// enter counts a request until its answer comes, whether or not somebody still waits for that.
func (m *Member) enter(cmd flow.Command, reply func(answer)) func(answer) {
	bytes := int64(bytesOf(cmd))
	m.messages.Add(1)
	m.waitingBytes.Add(bytes)
	return func(a answer) {
		m.messages.Add(-1)
		m.waitingBytes.Add(-bytes)
		reply(a)
	}
}

// bytesOf are those of a command's values.
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
