package socket

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/troupe-engine/troupe/api"
	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/api/v1/history"
	"github.com/troupe-engine/troupe/api/wire"
)

// clientSocket is one WebSocket connection. Each subscription reads its journal no faster than the
// client reads messages. So nothing is buffered, and no message is lost.
type clientSocket struct {
	s    *Handler
	conn *websocket.Conn

	leaving context.Context         // ends when the server stops
	ctx     context.Context         // ends all work for the client
	end     context.CancelCauseFunc // ends ctx; the cause is a *closeReason, or stream.ErrGone
	// context of the connection, which outlives ctx to send the close message
	alive context.Context
	cut   context.CancelFunc

	work    sync.WaitGroup
	writing sync.Mutex
	mu      sync.Mutex
	subs    map[string]*subscription
}

// closeReason is the reason why the server closes a connection.
type closeReason struct {
	code   websocket.StatusCode
	reason string
}

func (p *closeReason) Error() string { return p.reason }

var (
	serverLeaves = &closeReason{websocket.StatusGoingAway, "the server leaves: connect again and subscribe behind the last ids"}
	tooSlow      = &closeReason{websocket.StatusPolicyViolation,
		"messages are read too slowly: connect again and subscribe behind the last ids"}
	pingTimeout = &closeReason{websocket.StatusPolicyViolation, "a ping was not answered"}
	broken      = &closeReason{websocket.StatusInternalError, "internal error; the server's log has more"}
)

const (
	// pongPatience is the factor by which a ping may take longer than a message, because the client
	// reads earlier messages first.
	pongPatience = 3
	// partingTime is how long a slow client may continue to read before the close message. When the
	// server stops, it is hurryTime.
	partingTime = 30 * time.Second
	hurryTime   = time.Second
)

func newSocket(s *Handler, conn *websocket.Conn, leaving context.Context) *clientSocket {
	k := &clientSocket{s: s, conn: conn, leaving: leaving, subs: map[string]*subscription{}}
	k.ctx, k.end = context.WithCancelCause(leaving)
	k.alive, k.cut = context.WithCancel(context.WithoutCancel(leaving))
	return k
}

// serveConn serves the connection. It returns when the connection is closed and all its goroutines
// have ended.
func (k *clientSocket) serveConn() {
	k.runRecovered(k.readRequests)
	k.runRecovered(k.sendPings)
	<-k.ctx.Done()
	k.closeConn()
	k.work.Wait()
}

// runRecovered runs a function in a goroutine. A panic closes the connection.
func (k *clientSocket) runRecovered(what func()) {
	k.work.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				k.s.Logger.Error("stream panicked", "panic", p, "request", api.RequestID(k.ctx), "stack", string(debug.Stack()))
				k.end(broken)
			}
		}()
		what()
	})
}

func (k *clientSocket) readRequests() {
	for {
		kind, data, err := k.conn.Read(k.alive)
		if err != nil {
			k.end(stream.ErrGone)
			return
		}
		if k.ctx.Err() == nil {
			k.handleRequest(kind, data)
		}
		runtime.Gosched() // lets other subscriptions send in between
	}
}

// sendPings sends pings, so that both sides detect a dead connection.
func (k *clientSocket) sendPings() {
	tick := time.NewTicker(k.s.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-tick.C:
		}
		// ctx may end before the close message is sent
		ctx, cancel := context.WithTimeout(k.alive, pongPatience*k.s.Patience)
		err := k.conn.Ping(ctx)
		cancel()
		if err != nil {
			k.end(pingTimeout) // no effect if there is an earlier reason
			return
		}
	}
}

// writeMessage sends a message. A client that takes too long to read it is disconnected.
func (k *clientSocket) writeMessage(m wire.StreamMessage) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	if k.ctx.Err() != nil {
		return stream.ErrGone
	}
	slow := time.AfterFunc(k.s.Patience, func() { k.end(tooSlow) })
	defer slow.Stop()
	if err := k.conn.Write(k.alive, websocket.MessageText, history.EncodeLine(&m)); err != nil {
		k.end(stream.ErrGone)
		return stream.ErrGone
	}
	return nil
}

// closeConn sends the close message after the current message, and closes the connection.
func (k *clientSocket) closeConn() {
	defer func() {
		k.cut()
		_ = k.conn.CloseNow() // returns an error if the connection is closed already
	}()
	p := serverLeaves
	switch cause := context.Cause(k.ctx).(type) {
	case *closeReason:
		p = cause
		k.s.Logger.Info("stream closed", "reason", p.reason, "request", api.RequestID(k.ctx))
	default:
		if cause == stream.ErrGone {
			return
		}
	}
	timer := time.AfterFunc(partingTime, k.cut)
	defer timer.Stop()
	defer context.AfterFunc(k.leaving, func() { timer.Reset(hurryTime) })()
	k.writing.Lock()
	defer k.writing.Unlock()
	_ = k.conn.Close(p.code, p.reason) // a client that is gone needs no close message
}
