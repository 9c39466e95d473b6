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
	"github.com/troupe-engine/troupe/api/transport"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
)

// Config is the configuration of a Server. Zero fields have useful defaults.
type Config struct {
	Member
	Families []Family // families of routes, in addition to those of the server

	// Apart holds handlers for other programs, by path prefix. They check their callers themselves,
	// and only their own limits of time and size apply. They end with the server. Certificates of
	// clients are required here, too.
	Apart map[string]http.Handler

	// Pages serves the web pages below /ui/. The pages need no token, but their requests for data
	// do. nil means that there are no pages.
	Pages http.Handler

	// bearer tokens; without any, every client may use the server
	Tokens []string
	// origins of web pages that may call the server, in addition to this computer; "*" means all
	AllowOrigins []string
	AllowHosts   []string // host names of this server in addition to its address; "*" means all

	// TLS holds the server's certificate. If it is nil or has no certificate, the server speaks
	// plain HTTP.
	TLS *transport.Certificates

	// maximum number of open connections; default is half of the file descriptors of this process
	Connections int
	IdleTimeout time.Duration // maximum idle time of a connection between requests; default 2 min
	// time for a whole request, and for the client to read each part of the answer; streams and
	// long polls have no limit for the request; default 30 s
	ReadTimeout time.Duration
	// idle time after which an HTTP/2 client is pinged, and time for its answer; default 10 s
	Silence time.Duration
	Grace   time.Duration // how long requests may continue when the server stops; default 10 s

	Collectors []prometheus.Collector // collectors for /metrics in addition to those of the server
}

func (c Config) orDefault() Config {
	c.Member = c.Member.OrDefault()
	c.IdleTimeout = cmp.Or(max(c.IdleTimeout, 0), 2*time.Minute)
	c.ReadTimeout = cmp.Or(max(c.ReadTimeout, 0), 30*time.Second)
	c.Silence = cmp.Or(max(c.Silence, 0), 10*time.Second)
	c.Grace = cmp.Or(max(c.Grace, 0), 10*time.Second)
	return c
}

// Server is the HTTP server of a member.
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
	claims  map[string][]dialectClaim // claims of other dialects, by path
	// by pattern; true if access depends on the role only, false if the handler checks its callers
	// itself
	routed map[string]bool
}

// New creates a server with its routes. It does not listen yet.
func New(cfg Config) (*Server, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg = cfg.orDefault()
	s := &Server{
		cfg: cfg, log: cfg.Logger, mux: http.NewServeMux(), claims: map[string][]dialectClaim{}, routed: map[string]bool{},
		guard: newGuard(cfg), refused: newRefusals(cfg.Logger), turns: newAdmission(cfg.ReadTimeout,
			largeMemory), outside: newAdmission(cfg.ReadTimeout, outsideMemory),
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

// Handler returns the whole server as a handler, for the caller's own listener.
func (s *Server) Handler() http.Handler {
	return s.serveApart(withTrace(s.withRequestLog(s.withTimeLimit(s.limitBodies(s.refuseStrangers(requireText(s.mux)))))))
}

// serveApart serves the handlers of Config.Apart, and passes everything else on.
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

// limitBodies bounds the bodies of requests. Reading beyond the limit fails with an error that is
// answered with 413.
func (s *Server) limitBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = &boundedBody{http.MaxBytesReader(w, r.Body, s.cfg.MaxBody), r.Body}
		next.ServeHTTP(w, r)
	})
}

// boundedBody is a body with a limit. It also gives access to the body without the limit, because
// streams have no end.
type boundedBody struct {
	io.ReadCloser
	unbounded io.ReadCloser
}

// withTimeLimit cancels the waits of a request before its connection is closed, so that a hanging
// store results in an answer. While the store is known to be unavailable, the limit is
// outageTimeout. The limit is a timer, because a deadline could not be lifted for a request that
// stays. It restarts when the request no longer stays.
func (s *Server) withTimeLimit(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		limit := &repeatingTimer{}
		startLimit := func() {
			until := time.Now().Add(s.cfg.ReadTimeout)
			limit.startTimer(min(outageTimeout, s.cfg.ReadTimeout), func() bool {
				if away := s.cfg.Engine.Ready(); errors.Is(away, engine.ErrUnavailable) {
					cancel(away)
				} else if !time.Now().Before(until) {
					cancel(nil)
				}
				return ctx.Err() == nil
			})
		}
		startLimit()
		defer limit.Stop()
		timed := r.WithContext(stream.OnLeave(stream.OnStay(ctx, limit.Stop), startLimit))
		// copied to the outer request, for logs and metrics
		defer func() { r.Pattern = timed.Pattern }()
		next.ServeHTTP(w, timed)
	})
}

// outageTimeout is how long a request may take while the store is unavailable. It is also the
// interval at which running requests check this.
const outageTimeout = 800 * time.Millisecond

// repeatingTimer is a timer that fires again until it is stopped.
type repeatingTimer struct {
	mu      sync.Mutex
	timer   *time.Timer
	stopped bool
}

// startTimer calls ring after each interval d until ring returns false. A stopped timer may be
// started again.
func (l *repeatingTimer) startTimer(d time.Duration, ring func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = false
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

// requireText rejects paths and queries that contain invalid text, because no store could search
// for them.
func requireText(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		where := ""
		if !flow.IsText(r.URL.Path) {
			where = "path"
		} else if query, err := url.QueryUnescape(r.URL.RawQuery); err == nil && !flow.IsText(query) {
			where = "query"
		}
		if where != "" {
			refuseRequest(w, r, problemOf(flow.Invalid, where,
				"it is not valid UTF-8 text, or holds the character U+0000", "correct the address"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refuseStrangers rejects requests that the guard does not admit. Probes of this process are always
// admitted.
func (s *Server) refuseStrangers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			if why := s.guard.checkAccess(r); why != nil {
				NoteRefusal(r.Context(), "not allowed: "+cmp.Or(why.Field, "no client certificate"))
				refuseRequest(w, r, *why)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// NeedToken admits callers with a token, limited by the memory for their bodies.
func (s *Server) NeedToken(next http.Handler) http.Handler {
	return s.needToken(s.turns.withAdmission(next, s.cfg.MaxBody))
}

// FromOutside admits callers that prove themselves without a token, with bodies of at most the
// given bytes. Their bodies use separate memory.
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
			NoteRefusal(r.Context(), why.Message)
			w.Header().Set("WWW-Authenticate", "Bearer")
			if bearerToken(r) != "" {
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			}
		}
		SayWhen(w.Header(), why.Status)
		refuseRequest(w, r, *why)
	})
}

// Serve answers requests until ctx ends. Then it ends long polls and streams, waits up to Grace for
// other requests, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	leaving, leave := context.WithCancel(context.Background())
	defer leave()
	stays := stream.NewDeparture(leaving)
	open := transport.LimitConnections(l, s.cfg.Connections)
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
		s.log.Warn("requests were cut off at the end of the grace period", "error", err)
		_ = srv.Close() // the grace period is over, so errors do not matter
	}
	stays.Wait(grace)
	<-failed
	return nil
}

// newHTTPServer returns a server for HTTP/1 and HTTP/2, over TLS if there are certificates.
func (s *Server) newHTTPServer(stays *stream.Departure, open *transport.LimitedListener) *http.Server {
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
		ConnState:         open.TrackState,
	}
	if s.cfg.TLS.Serves() {
		srv.TLSConfig = s.cfg.TLS.Server()
	}
	return srv
}
