package attached

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/actors/internal/carry"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/persistence"
)

// Options of Sessions. Zero fields mean the default.
type Options struct {
	// Grace is how long a session whose stream broke waits for its worker; 5 s. Negative: not at all.
	Grace time.Duration
	// Heartbeat is how often each side gives a sign of life. Who is silent for three times as long is gone; 2 s.
	Heartbeat time.Duration
	// MaxMessage bounds a message of a worker in bytes; 8 MiB.
	MaxMessage int64
	// Patience is how long after the start a job waits for workers that were attached before; 5 s.
	Patience time.Duration
	// Workers is where those that are attached are listed.
	Workers Workers
	// Note keeps what a worker calls the state of its job. nil = nobody does.
	Note func(ctx context.Context, task string, n flow.Note) error
	// Logs keeps what workers say while they are at a job. nil = nobody does.
	Logs persistence.Logs
	// Logger; slog.Default().
	Logger *slog.Logger
}

func (o Options) orDefault() Options {
	o.Grace = max(cmp.Or(o.Grace, 5*time.Second), 0)
	o.Heartbeat = cmp.Or(o.Heartbeat, 2*time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 8<<20)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Workers knows all workers, however they get their jobs.
type Workers interface {
	Register(ctx context.Context, w persistence.Worker) error
	Heartbeat(ctx context.Context, id string, load int) error
	Deregister(ctx context.Context, id string) error
	// Awaited says whether a worker that was attached before this member began, and has not been heard of since, would
	// be there for such jobs.
	Awaited(exec *flow.Exec) bool
}

// Sessions are the workers that are attached to this member. They are its actors.Relay.
type Sessions struct {
	opts   Options
	opened time.Time
	notes  chan noted
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	done   sync.WaitGroup

	some atomic.Bool // somebody is attached, or awaited: else nothing needs to be looked at

	mu       sync.Mutex
	byID     map[string]*session
	offering map[string][]*session // by service, in the order they came
	lines    map[string]*line      // jobs that wait, by whom they need
	held     map[carry.Passage]*grant
	names    map[string]int // sessions of each worker
	turn     uint64         // of the job that came last
	shut     bool           // nothing new begins, and workers are told to leave
	away     bool           // likewise, until somebody serves their streams again
}

// New has no sessions yet.
func New(opts Options) *Sessions {
	s := &Sessions{opts: opts.orDefault(), opened: time.Now(), notes: make(chan noted, maxNotes), byID: map[string]*session{},
		offering: map[string][]*session{}, lines: map[string]*line{}, held: map[carry.Passage]*grant{}, names: map[string]int{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.some.Store(true)
	s.done.Go(s.keepNotes)
	s.done.Go(s.giveUpWaiting)
	return s
}

// Close ends what goes on without streams. There are none any more.
func (s *Sessions) Close() {
	s.stop()
	s.mu.Lock()
	for _, ses := range s.byID {
		if ses.timer != nil {
			ses.timer.Stop()
		}
	}
	s.mu.Unlock()
	s.done.Wait()
}

// giveUpWaiting fails the jobs of workers that have not come back in time after a start.
func (s *Sessions) giveUpWaiting() {
	timer := time.NewTimer(s.opts.Patience)
	defer timer.Stop()
	select {
	case <-s.ctx.Done():
		return
	case <-timer.C:
	}
	s.mu.Lock()
	s.some.Store(len(s.byID) > 0)
	failed := s.hopeless()
	s.mu.Unlock()
	refuse(failed)
}

// Offers says whether a worker is attached that may get a job like this one, or is about to come back.
func (s *Sessions) Offers(exec *flow.Exec) bool {
	if !s.some.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offers(exec.Service, exec.Labels) || s.awaits(exec)
}

func (s *Sessions) offers(service string, labels []string) bool {
	return slices.ContainsFunc(s.offering[service], func(ses *session) bool { return ses.hasAll(labels) })
}

// awaits says whether workers of before may come back. Those that wait for a session's grace are there.
func (s *Sessions) awaits(exec *flow.Exec) bool {
	return s.opts.Workers != nil && time.Since(s.opened) < s.opts.Patience && s.opts.Workers.Awaited(exec)
}

// Send gives jobs to workers, or has them wait for one.
func (s *Sessions) Send(jobs []carry.Passage) {
	var failed []carry.Passage
	var touched []*connection
	s.mu.Lock()
	for _, p := range jobs {
		job := p.Job()
		ses := s.freest(job.Exec)
		switch {
		case ses != nil:
			if ses.give(p, &job) && !slices.Contains(touched, ses.stream) {
				touched = append(touched, ses.stream)
			}
		case s.leaving() || s.offers(job.Exec.Service, job.Exec.Labels) || s.awaits(job.Exec):
			s.lineUp(p, job.Exec)
		default:
			failed = append(failed, p)
		}
	}
	s.mu.Unlock()
	for _, c := range touched {
		c.call()
	}
	refuse(failed)
}

// refuse lands jobs that nobody is there for. Those of type http may find a push worker.
func refuse(jobs []carry.Passage) {
	for _, p := range jobs {
		if p.Over() {
			p.Land(flow.Report{Lost: true})
			continue
		}
		switch exec := p.Job().Exec; exec.Type {
		case flow.ExecHTTP:
			p.Land(flow.Report{Lost: true, Unbegun: true})
		default:
			p.Land(flow.Report{Error: carry.NoWorker(exec)})
		}
	}
}

// freest is the session with the most free credits of those that may get a job; nil = none has any.
func (s *Sessions) freest(exec *flow.Exec) (best *session) {
	if s.leaving() {
		return nil
	}
	for _, ses := range s.offering[exec.Service] {
		if free := ses.free(); free > 0 && (best == nil || free > best.free()) && ses.hasAll(exec.Labels) {
			best = ses
		}
	}
	return best
}

// CallOff withdraws a job. Its place with the worker is taken until the worker has answered.
func (s *Sessions) CallOff(p carry.Passage) {
	s.mu.Lock()
	g := s.held[p]
	if g == nil {
		s.leaveLine()
		s.mu.Unlock()
		return
	}
	delete(s.held, p)
	g.passage, g.job = nil, nil
	g.of.out.canceled = append(g.of.out.canceled, g.number)
	s.mu.Unlock()
	g.of.call()
	p.Land(flow.Report{Lost: true})
}

// Shut has no job begin any more, and tells the workers to finish what they have.
func (s *Sessions) Shut() { s.depart(&s.shut) }

// Leave is Shut for the time in which nobody serves streams: jobs wait, and Return ends it.
func (s *Sessions) Leave() { s.depart(&s.away) }

// Return says that streams are served.
func (s *Sessions) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
}

func (s *Sessions) leaving() bool { return s.shut || s.away }

func (s *Sessions) depart(how *bool) {
	s.mu.Lock()
	*how = true
	all := make([]*session, 0, len(s.byID))
	for _, ses := range s.byID {
		all = append(all, ses)
	}
	s.mu.Unlock()
	for _, ses := range all {
		ses.call()
	}
}
