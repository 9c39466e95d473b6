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
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/troupe-engine/troupe/engine"
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
	id     Identity // of who asks; the Incarnation is that of the addressee in each request
	client *http.Client
	log    *slog.Logger
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	lines map[string]*line // by incarnation
	told  map[string]bool  // the incarnations that could not be reached
}

// NewPeers asks in the name of a member. Close ends it.
func NewPeers(id Identity, trust *tls.Config, log *slog.Logger) *Peers {
	p := &Peers{id: id, log: log, told: map[string]bool{}, client: &http.Client{Transport: peerTransport(trust)}, lines: map[string]*line{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// peerTransport speaks HTTP/2 alone, with or without TLS, and goes through no proxy.
func peerTransport(trust *tls.Config) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Transport{
		Protocols: &protocols, TLSClientConfig: trust, TLSHandshakeTimeout: dialTimeout,
		DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext,
		HTTP2:       &http.HTTP2Config{SendPingTimeout: silence, PingTimeout: signTimeout, WriteByteTimeout: writeStall},
	}
}

// abrupt ends a stream with its context. The client alone would notice only when it has something to send.
type abrupt struct{ *http.Client }

func (a abrupt) Do(r *http.Request) (*http.Response, error) {
	res, err := a.Client.Do(r)
	if err == nil {
		context.AfterFunc(r.Context(), func() { _ = res.Body.Close() }) // nobody reads on
	}
	return res, err
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
	for incarnation, l := range p.lines {
		if !alive(incarnation) || l.ended() {
			l.cancel()
			delete(p.lines, incarnation)
		}
	}
}

// Ask asks another member; a Refusal is an error.
func (p *Peers) Ask(ctx context.Context, to persistence.MemberRow, q engine.Message) (engine.Message, error) {
	l, err := p.line(to)
	if err != nil {
		return nil, err
	}
	m, err := l.ask(ctx, q)
	if r, refused := m.(*engine.Refusal); refused {
		return nil, r.Err
	}
	return m, err
}

// Tell tells another member something that it does not answer; best effort.
func (p *Peers) Tell(to persistence.MemberRow, m engine.Message) {
	if l, err := p.line(to); err == nil {
		_ = l.tell(m) // the effort was made
	}
}

// line is that to a member; one that has ended is followed by a new one.
func (p *Peers) line(to persistence.MemberRow) (*line, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, away(to, errors.New("this member is leaving"))
	}
	if l := p.lines[to.Incarnation]; l != nil && !l.ended() {
		return l, nil
	}
	if to.URL == "" {
		return nil, away(to, errors.New("it does not tell where it is reached"))
	}
	client := p.caller(to, deliverPath)
	l := open(p.ctx, to, func(ctx context.Context) *connect.BidiStreamForClient[frame, frame] {
		stream := client.CallBidiStream(ctx)
		p.introduce(stream.RequestHeader(), to)
		return stream
	}, &p.work, func(why error) { p.lost(to, why) })
	p.lines[to.Incarnation] = l
	return l, nil
}

// lost logs that a member cannot be reached, once for each incarnation.
func (p *Peers) lost(to persistence.MemberRow, why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told[to.Incarnation] && len(p.told) < mostTold {
		p.told[to.Incarnation] = true
		p.log.Warn("a line to another member was lost, or could not be opened: trying on", "member", to.Name, "url", to.URL, "why", why)
	}
}

func (p *Peers) caller(to persistence.MemberRow, path string) *connect.Client[frame, frame] {
	return connect.NewClient[frame, frame](abrupt{p.client}, strings.TrimSuffix(to.URL, "/")+path,
		connect.WithCodec(frames{}), connect.WithReadMaxBytes(mostRead), connect.WithAcceptCompression("gzip", nil, nil))
}

func (p *Peers) introduce(h http.Header, to persistence.MemberRow) {
	h.Set(clusterHeader, p.id.Cluster)
	h.Set(toHeader, to.Incarnation)
	if p.id.Secret != "" {
		h.Set(secretHeader, p.id.Secret)
	}
}

// Watch reads the rows of a journal that another member tells as it grows. It ends when that one says so, by an error
// when it is lost before.
func (p *Peers) Watch(ctx context.Context, to persistence.MemberRow, q engine.Follow) iter.Seq2[engine.Row, error] {
	return func(yield func(engine.Row, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(p.ctx, cancel)()
		rows, err := p.follow(ctx, to, q)
		if err != nil {
			yield(engine.Row{}, away(to, err))
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
			yield(engine.Row{}, away(to, err))
		}
	}
}

func (p *Peers) follow(ctx context.Context, to persistence.MemberRow, q engine.Follow) (*connect.ServerStreamForClient[frame], error) {
	f, err := one(&q)
	if err != nil {
		return nil, err
	}
	req := connect.NewRequest(f)
	p.introduce(req.Header(), to)
	return p.caller(to, watchPath).CallServerStream(ctx, req)
}

func rowOf(f *frame) (engine.Row, error) {
	m, err := f.message()
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
