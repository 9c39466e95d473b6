package socket

import (
	"context"
	"errors"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/history"
	"github.com/troupe-engine/troupe/api/wire"
)

// subscription is a channel on a socket, and the listener of the channel's stream.
type subscription struct {
	k       *clientSocket
	channel string
	opened  bool
	stop    context.CancelCauseFunc
	done    chan struct{}
}

var errUnsubscribed = errors.New("unsubscribed")

func (k *clientSocket) findSubscription(channel string) *subscription {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.subs[channel]
}

func (k *clientSocket) countSubscriptions() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.subs)
}

func (k *clientSocket) startSubscription(channel string, tell streamFunc) {
	sub := &subscription{k: k, channel: channel, done: make(chan struct{})}
	ctx, stop := context.WithCancelCause(k.ctx)
	sub.stop = stop
	k.mu.Lock()
	k.subs[channel] = sub
	k.mu.Unlock()
	k.runRecovered(func() {
		defer close(sub.done)
		defer stop(nil)
		err := tell(ctx, sub)
		k.mu.Lock()
		// deleted before the client gets the last message, so that the client may subscribe again
		delete(k.subs, channel)
		k.mu.Unlock()
		sub.sendClosed(ctx, err)
	})
}

// sendClosed sends the reason why the channel ends.
func (sub *subscription) sendClosed(ctx context.Context, err error) {
	k, reason := sub.k, wire.ClosedInterrupted
	switch {
	case k.ctx.Err() != nil:
		return // the whole connection ends
	case context.Cause(ctx) == errUnsubscribed:
		reason = wire.ClosedUnsubscribed
	case err == nil:
		reason = wire.ClosedEnded
	case !sub.opened:
		k.sendRefusal(sub.channel, err)
		return
	case !errors.Is(err, stream.ErrBrokenOff):
		k.s.Logger.Error("stream interrupted", "error", err, "channel", sub.channel, "request", api.RequestID(ctx))
	}
	sub.sendMessage(wire.StreamMessage{Event: wire.StreamClosed, Data: history.EncodeLine(&wire.Closed{Reason: reason})})
}

// sendMessage sends a message of the channel. It ignores write errors, because the client is gone
// then.
func (sub *subscription) sendMessage(m wire.StreamMessage) {
	m.Channel = sub.channel
	_ = sub.k.writeMessage(m)
}

// sendRefusal sends the fault of a request to the client.
func (k *clientSocket) sendRefusal(channel string, err error) {
	p := k.s.Router.ToProblem(k.ctx, err)
	// errors are ignored as in sendMessage
	_ = k.writeMessage(wire.StreamMessage{Channel: channel, Event: wire.StreamRejected, Data: history.EncodeLine(&p.Problem)})
}

// Open implements stream.Listener.
func (sub *subscription) Open() error {
	if sub.opened {
		return nil
	}
	sub.opened = true
	return sub.k.writeMessage(wire.StreamMessage{Channel: sub.channel, Event: wire.StreamSubscribed})
}

// Send implements stream.Listener.
func (sub *subscription) Send(list []stream.Message) error {
	for _, m := range list {
		if err := sub.Open(); err != nil {
			return err
		}
		if m.Event == "" {
			m.Event = wire.StreamEvent
		}
		data, err := sub.k.s.Payloads.Whole(m.Data)
		if err != nil {
			return err
		}
		if err := sub.k.writeMessage(wire.StreamMessage{Channel: sub.channel, Event: m.Event, ID: m.ID, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// Note implements stream.Listener. It sends nothing, because pings show that a silent connection is
// alive.
func (sub *subscription) Note(string) error {
	if sub.k.ctx.Err() != nil {
		return stream.ErrGone
	}
	return nil
}
