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

// These timeouts detect that another member is unreachable.
const (
	dialTimeout = time.Second
	silence     = time.Second // time without data after which a ping is sent
	signTimeout = time.Second // time for the answer to a ping
	writeStall  = 5 * time.Second
)

// Peers sends requests to other members of the cluster. It opens connections on demand and keeps
// them.
type Peers struct {
	// Now returns the store's time; the default is this host's time. Set it before the first
	// request.
	Now func() time.Time

	id     Identity
	client *http.Client
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu                sync.Mutex
	conns             map[string]*peerConn // by incarnation
	loggedUnreachable map[string]bool      // incarnations logged as unreachable
}

// NewPeers returns Peers for a member. trust returns the TLS settings for each connection; nil
// means the system's certificates. Call Close at the end.
func NewPeers(id Identity, trust func() *tls.Config, log *slog.Logger) *Peers {
	p := &Peers{Now: time.Now, id: id, log: log, loggedUnreachable: map[string]bool{}, conns: map[string]*peerConn{}}
	p.client = &http.Client{Transport: packets.Whole{Transport: peerTransport(trust)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// peerTransport returns a transport that uses only HTTP/2, with or without TLS, and no proxy.
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

// dialTLS returns a dialer that uses the current TLS settings.
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

// Close closes all connections and waits for their goroutines.
func (p *Peers) Close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
	p.client.CloseIdleConnections()
}

// Keep closes the connections to members that are not alive.
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

// Ask sends a request to another member. It returns a Refusal as an error.
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

// Tell sends another member a message without a response. The message may be lost.
func (p *Peers) Tell(to persistence.MemberRow, m engine.Message) {
	if l, err := p.connTo(to); err == nil {
		_ = l.sendMessage(m) // the message may be lost
	}
}

// connTo returns the connection to a member. It replaces a closed one.
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
		p.log.Warn("connection to a member failed, retrying", "member", to.Name, "url", to.URL, "reason", why)
	}
}

// Watch returns the rows of a journal from another member as they are written. The sequence ends
// when that member ends it, or with an error if the member is lost.
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
