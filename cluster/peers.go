package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/internal/packets"
	"github.com/troupe-engine/troupe/persistence"
)

// How soon it is noticed that another member is not there, or not any longer.
const (
	dialTimeout = time.Second
	silence     = time.Second // after which it is asked for a sign of life …
	signTimeout = time.Second // … and how long that may take
	writeStall  = 5 * time.Second
)

// Peers asks other members of the cluster. Lines to them are opened when they are needed, and kept.
type Peers struct {
	// Now is the time of the store; this host's unless it is set before anybody is asked.
	Now func() time.Time

	id     Identity
	client *http.Client
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu                sync.Mutex
	conns             map[string]*peerConn // by incarnation
	loggedUnreachable map[string]bool      // the incarnations that could not be reached
}

// NewPeers asks in the name of a member. trust says for each connection over TLS whom to believe;
// nil = whom the system does. Close ends it.
func NewPeers(id Identity, trust func() *tls.Config, log *slog.Logger) *Peers {
	p := &Peers{Now: time.Now, id: id, log: log, loggedUnreachable: map[string]bool{}, conns: map[string]*peerConn{}}
	p.client = &http.Client{Transport: packets.Whole{Transport: peerTransport(trust)}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// peerTransport speaks HTTP/2 alone, with or without TLS, and goes through no proxy.
func peerTransport(trust func() *tls.Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		Protocols: &protocols, DialContext: dialer.DialContext, DialTLSContext: dialTLS(dialer, trust),
		HTTP2: &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: signTimeout, WriteByteTimeout: writeStall},
	}
}

// dialTLS dials over TLS with the trust of that moment.
func dialTLS(dialer *net.Dialer, trust func() *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		cfg := &tls.Config{}
		if trust != nil {
			cfg = trust()
		}
		cfg.NextProtos = []string{"h2"}
		ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
		defer cancel()
		return (&tls.Dialer{NetDialer: dialer, Config: cfg}).DialContext(ctx, network, addr)
	}
}

// Close ends all lines and waits for what they did.
func (p *Peers) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
	p.client.CloseIdleConnections()
}

// Keep ends the lines to all but those who live.
func (p *Peers) Keep(alive func(incarnation string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for incarnation, l := range p.conns {
		if !alive(incarnation) || l.isClosed() {
			l.cancel()
			delete(p.conns, incarnation)
		}
	}
}

// Ask asks another member; a Refusal is an error.
func (p *Peers) Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error) {
	l, err := p.connTo(to)
	if err != nil {
		return nil, err
	}
	m, err := l.askQuestion(ctx, q)
	if r, refused := m.(*engine.Refusal); refused {
		return nil, r.Err
	}
	return m, err
}

// Tell tells another member something that it does not answer; best effort.
func (p *Peers) Tell(to persistence.MemberRow, m engine.Message) {
	if l, err := p.connTo(to); err == nil {
		_ = l.sendMessage(m) // the effort was made
	}
}

// connTo is that to a member; one that has ended is followed by a new one.
func (p *Peers) connTo(to persistence.MemberRow) (*peerConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, awayError(to, errors.New("this member is leaving"))
	}
	if l := p.conns[to.Incarnation]; l != nil && !l.isClosed() {
		return l, nil
	}
	if to.URL == "" {
		return nil, awayError(to, errors.New("it does not tell where it is reached"))
	}
	client := p.newClient(to, deliverPath)
	l := openConn(p.ctx, to, func(ctx context.Context) *connect.BidiStreamForClient[frame, frame] {
		return client.CallBidiStream(ctx)
	}, &p.work, func(why error) { p.logLost(to, why) })
	p.conns[to.Incarnation] = l
	return l, nil
}

// logLost logs that a member cannot be reached, once for each incarnation.
func (p *Peers) logLost(to persistence.MemberRow, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.loggedUnreachable[to.Incarnation] && len(p.loggedUnreachable) < mostTold {
		p.loggedUnreachable[to.Incarnation] = true
		p.log.Warn("a line to another member was lost, or could not be opened: trying on", "member", to.Name, "url", to.URL, "why", why)
	}
}

// Watch reads the rows of a journal that another member tells as it grows. It ends when that one
// says so, by an error when it is lost before.
func (p *Peers) Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		rows, err := p.openFollow(ctx, to, q)
		if err != nil {
			yield(engine.Row{}, awayError(to, err))
			return
		}
		defer rows.Close()
		for rows.Receive() {
			row, err := rowOf(rows.Msg())
			if !yield(row, err) || err != nil {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(engine.Row{}, awayError(to, err))
		}
	}
}

func (p *Peers) openFollow(ctx context.Context, to persistence.MemberRow, q engine.Follow) (*connect.ServerStreamForClient[frame], error) {
	f, err := singleFrame(&q)
	if err != nil {
		return nil, err
	}
	return p.newClient(to, watchPath).CallServerStream(ctx, connect.NewRequest(f))
}

func rowOf(f *frame) (engine.Row, error) {
	m, err := f.decodeSingle()
	if err != nil {
		return engine.Row{}, err
	}
	switch m := m.(type) {
	case *engine.Row:
		return *m, nil
	case *engine.Refusal:
		return engine.Row{}, m.Err
	}
	return engine.Row{}, fmt.Errorf("a %T is no row of a journal", m)
}
