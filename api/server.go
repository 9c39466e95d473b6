package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/troupe-engine/troupe/api/stream"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Config says what a Server serves and to whom. Zero fields have useful defaults.
type Config struct {
	Member
	Families []Family // of routes, beside the shell's own

	// Apart is what is not for people, by how its paths begin: it checks who comes itself, and its
	// requests have no bounds of time or size but its own. They end with the server. Where clients
	// need certificates, so do they.
	Apart map[string]http.Handler

	// Pages are for people with a browser, and serve what is below /ui/. They need no token: what
	// they show does. nil = there are none.
	Pages http.Handler

	Tokens       []string // bearer tokens; none = everybody who reaches the server may use it
	AllowOrigins []string // origins of web pages that may call, besides this computer's; "*" = all
	AllowHosts   []string // names this server is called by, besides its address; "*" = all

	// TLS is what the server proves itself with; nil, or without a certificate = it speaks plain
	// HTTP.
	TLS *Certificates

	Connections int           // open ones at once; half of the file descriptors that this process may have
	IdleTimeout time.Duration // of a connection between two requests; 2 min
	ReadTimeout time.Duration // for one whole request, and for each part of its answer to be read; streams and long polls lift the first; 30 s
	Silence     time.Duration // after which a client of HTTP/2 is asked for a sign of life, and how long that may take; 10 s
	Grace       time.Duration // how long requests may go on when the server leaves; 10 s

	Collectors []prometheus.Collector // what /metrics shows beside the shell's own
}

func (c Config) orDefault() Config {
	c.Member = c.Member.OrDefault()
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), 2*time.Minute)
	c.ReadTimeout = cmp.Or(max(c.ReadTimeout, 0), 30*time.Second)
	c.Silence = cmp.Or(max(c.Silence, 0), 10*time.Second)
	c.Grace = cmp.Or(max(c.Grace, 0), 10*time.Second)
	return c
}

// Server is a member's HTTP side.
type Server struct {
	cfg     Config
	log     *slog.Logger
	guard   *accessGuard
	refused *refusalLog
	turns   *bodyAdmission
	outside *bodyAdmission
	metrics *serverMetrics
	ready   lastReadiness
	mux     *http.ServeMux
	claims  map[string][]dialectClaim // by path
	routed  map[string]bool           // patterns; true = only roles may call them, or else whoever serves them says who may
}

// New wires the routes. Nothing listens yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.orDefault()
	s := &Server{
		cfg: cfg, log: cfg.Logger, mux: http.NewServeMux(), claims: map[string][]dialectClaim{}, routed: map[string]bool{},
		guard: newGuard(cfg), refused: newRefusals(cfg.Logger), turns: newAdmission(cfg.ReadTimeout, largeMemory), outside: newAdmission(cfg.ReadTimeout, outsideMemory),
	}
	var err error
	if s.metrics, err = newMetrics(cfg); err != nil {
		return nil, err
	}
	s.mountRoutes()
	return s, nil
}

func (s *Server) mountRoutes() {
	s.MountOpen("GET /healthz", http.HandlerFunc(s.handleHealthz))
	s.MountOpen("GET /readyz", http.HandlerFunc(s.handleReadyz))
	s.Mount("GET /metrics", s.metrics.metricsHandler())
	s.MountOpen("/api/", http.HandlerFunc(s.unknownRoute))
	s.MountOpen(everything, s.needToken(http.HandlerFunc(s.unknownPath)))
	s.pageRoutes()
	for _, f := range s.cfg.Families {
		f.Mount(s)
	}
}

// Handler is everything together, for a listener of the caller's.
func (s *Server) Handler() http.Handler {
	return s.serveApart(withTrace(s.withRequestLog(s.withTimeLimit(s.limitBodies(s.refuseStrangers(requireText(s.mux)))))))
}

// serveApart serves what is not for people beside everything else.
func (s *Server) serveApart(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for prefix, h := range s.cfg.Apart {
			if strings.HasPrefix(r.URL.Path, prefix) && !s.cfg.TLS.Lacks(r) {
				ctx, leave := stream.Stay(w, r)
				defer leave()
				h.ServeHTTP(w, r.WithContext(ctx))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// limitBodies keeps bodies within the limit; reading on is an error that becomes 413.
func (s *Server) limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &boundedBody{http.MaxBytesReader(w, r.Body, s.cfg.MaxBody), r.Body}
		next.ServeHTTP(w, r)
	})
}

// boundedBody is a body within the limit, and without it: that of a stream has no end.
type boundedBody struct {
	io.ReadCloser
	unbounded io.ReadCloser
}

// withTimeLimit ends what a request waits for before its connection is cut off: a store that hangs
// becomes an answer. While the member knows that its store is away a request may take
// outageTimeout. The limit is a timer, because a deadline could not be lifted when a request stays.
func (s *Server) withTimeLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		until := time.Now().Add(s.cfg.ReadTimeout)
		limit := &repeatingTimer{}
		limit.startTimer(min(outageTimeout, s.cfg.ReadTimeout), func() bool {
			if away := s.cfg.Engine.Ready(); errors.Is(away, engine.ErrUnavailable) {
				cancel(away)
			} else if !time.Now().Before(until) {
				cancel(nil)
			}
			return ctx.Err() == nil
		})
		defer limit.Stop()
		timed := r.WithContext(stream.OnStay(ctx, func() { limit.Stop() }))
		defer func() { r.Pattern = timed.Pattern }() // logs and metrics ask the outer request for its route
		next.ServeHTTP(w, timed)
	})
}

// outageTimeout is how long a request may take while the store is away, and how often those under
// way look whether it is.
const outageTimeout = time.Second

// repeatingTimer is a timer that rings again until it is stopped.
type repeatingTimer struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// startTimer rings until ring is false.
func (l *repeatingTimer) startTimer(d time.Duration, ring func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(d, func() {
		if goesOn := ring(); !goesOn {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.stopped {
			l.timer.Reset(d)
		}
	})
}

func (l *repeatingTimer) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	l.timer.Stop()
}

// requireText refuses addresses with what is no text: no store could look for it.
func requireText(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		where := ""
		if !flow.IsText(r.URL.Path) {
			where = "path"
		} else if query, err := url.QueryUnescape(r.URL.RawQuery); err == nil && !flow.IsText(query) {
			where = "query"
		}
		if where != "" {
			refuseRequest(w, r, problemOf(flow.Invalid, where, "it is not valid UTF-8 text, or holds the character U+0000", "correct the address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseStrangers refuses strangers, except for the probes of whoever looks after this process.
func (s *Server) refuseStrangers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			if why := s.guard.checkAccess(r); why != nil {
				NoteRefusal(r.Context(), "not allowed: "+cmp.Or(why.Where, "no client certificate"))
				refuseRequest(w, r, *why)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// NeedToken lets in who has a token, and of them as many at once as there is memory for what they
// send.
func (s *Server) NeedToken(next http.Handler) http.Handler {
	return s.needToken(s.turns.withAdmission(next, s.cfg.MaxBody))
}

// FromOutside lets in who has no token and has to prove himself otherwise, with a body of so many
// bytes at most; of those as many at once as there is memory for what they send, which nobody else
// has a part in.
func (s *Server) FromOutside(next http.Handler, most int64) http.Handler {
	return s.outside.withAdmission(next, min(most, s.cfg.MaxBody))
}

func (s *Server) needToken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, why := s.guard.identifyCaller(r)
		if why == nil {
			noteWho(r.Context(), who)
			if who.Token != "" {
				s.guard.stored.whileGood(next, w, r, who.Token)
			} else {
				next.ServeHTTP(w, r)
			}
			return
		}
		if why.Status == http.StatusUnauthorized {
			NoteRefusal(r.Context(), why.What)
			w.Header().Set("WWW-Authenticate", "Bearer")
			if bearerToken(r) != "" {
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			}
		}
		SayWhen(w.Header(), why.Status)
		refuseRequest(w, r, *why)
	})
}

// Serve answers until ctx ends. Then long polls and streams are ended, other requests get Grace to
// finish, and Serve returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	leaving, leave := context.WithCancel(context.Background())
	defer leave()
	stays := stream.NewDeparture(leaving)
	open := newConnections(l, s.cfg.Connections)
	srv := s.newHTTPServer(stays, open)
	failed := make(chan error, 1)
	go func() { // ends with Shutdown or Close below
		if srv.TLSConfig != nil {
			failed <- srv.ServeTLS(open, "", "")
			return
		}
		failed <- srv.Serve(open)
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("api: serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	leave()
	grace, cancel := context.WithTimeout(context.Background(), s.cfg.Grace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		s.log.Warn("requests were cut off by the end of the grace time", "error", err)
		_ = srv.Close() // they had their time; what Close could say about their connections helps nobody
	}
	stays.Wait(grace)
	<-failed
	return nil
}

// newHTTPServer speaks HTTP/1 and HTTP/2, over TLS where there are certificates.
func (s *Server) newHTTPServer(stays *stream.Departure, open *limitedListener) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       s.cfg.ReadTimeout,
		WriteTimeout:      2 * s.cfg.ReadTimeout,
		IdleTimeout:       s.cfg.IdleTimeout,
		MaxHeaderBytes:    64 << 10,
		Protocols:         &protocols,
		HTTP2:             &http.HTTP2Config{SendPingTimeout: s.cfg.Silence, PingTimeout: s.cfg.Silence},
		ErrorLog:          log.New(s.refused, "", 0),
		BaseContext:       func(net.Listener) context.Context { return stays.With(context.Background()) },
		ConnState:         open.onConnState,
	}
	if s.cfg.TLS.Serves() {
		srv.TLSConfig = s.cfg.TLS.Server()
	}
	return srv
}
