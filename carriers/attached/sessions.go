package attached

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/carriers"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Options configure Sessions. Zero fields mean the default.
type Options struct {
	// Grace is how long a session waits for its worker after the stream broke. Default 5 s;
	// negative means no wait.
	Grace time.Duration
	// Heartbeat is the interval of heartbeats in both directions. A side that is silent for three
	// intervals counts as gone. Default 2 s.
	Heartbeat time.Duration
	// Secret is shared by all members. It proves to a member that another member gave a job to a
	// worker. If empty, workers cannot bring jobs.
	Secret string
	// MaxMessage bounds a worker's message in bytes. Default 8 MiB.
	MaxMessage int64
	// Patience is how long after the start a job waits for workers that were attached before.
	// Default 5 s.
	Patience time.Duration
	// Workers is the list of workers, to which attached workers are added.
	Workers Workers
	// Note stores a worker's progress notes for its job. May be nil.
	Note func(ctx context.Context, task string, n flow.Note) error
	// Log opens the log for a worker's output during a job. May be nil.
	Log func(task, job string) Log
	// Logger is the log; nil means slog.Default().
	Logger *slog.Logger
	// Host is the environment of the sessions.
	Host host.Host
}

func (o Options) orDefault() Options {
	o.Grace = max(cmp.Or(o.Grace, 5*time.Second), 0)
	o.Heartbeat = cmp.Or(o.Heartbeat, 2*time.Second)
	o.MaxMessage = cmp.Or(o.MaxMessage, 8<<20)
	o.Patience = cmp.Or(o.Patience, 5*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Workers is the list of all workers of the cluster.
type Workers interface {
	Register(ctx context.Context, w persistence.Worker) error
	Heartbeat(ctx context.Context, id string, load int) error
	Deregister(ctx context.Context, id string) error
	// Signs returns the signs of life of a worker, from this and other members.
	Signs(id string) flow.Signs
	// Awaited reports whether a matching worker was attached before this member started, and has
	// not been heard since.
	Awaited(exec *flow.Exec) bool
	// Listed reports whether a matching worker is attached to any member and not silent.
	Listed(exec *flow.Exec) bool
}

// Sessions are the workers that are attached to this member. It implements actors.Relay.
type Sessions struct {
	opts   Options
	host   *host.Host
	opened time.Time
	notes  chan jobNote
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	done   host.Group

	mayServe atomic.Bool // a worker is attached or awaited; otherwise lookups are skipped

	mu       sync.Mutex
	byID     map[string]*workerSession
	expected []*attach.Hello // hellos of workers whose sessions are about to start
	groups   map[string]*sessionGroup
	offering map[string][]*sessionGroup // by service
	queues   map[string]*waitingQueue   // waiting jobs by type, service and labels
	held     map[carriers.Passage]*jobGrant
	// unsettled jobs that workers have brought
	broughtJobs map[jobKey]*jobGrant
	earlyBytes  int                     // bytes of the early results of unsettled jobs
	workers     map[string]*knownWorker // workers with sessions
	turn        uint64                  // number of the last job
	shut        bool                    // no new jobs start, and workers are asked to leave
	away        bool                    // like shut, until streams are served again

	tickets *ticketSigner // nil if workers cannot bring jobs
	bring   func(ctx context.Context, jobs engine.Orders) engine.Outcomes

	creditSharing
	heldFunctions
	remoteMembers  map[string]*memberCredits // by incarnation of the member
	remoteOffering map[string][]*remoteGroup // by service
}

// New returns Sessions without workers.
func New(opts Options) *Sessions {
	s := &Sessions{opts: opts.orDefault(), notes: make(chan jobNote, maxNotes), byID: map[string]*workerSession{},
		groups: map[string]*sessionGroup{}, offering: map[string][]*sessionGroup{},
		remoteMembers: map[string]*memberCredits{}, queues: map[string]*waitingQueue{},
		held: map[carriers.Passage]*jobGrant{}, broughtJobs: map[jobKey]*jobGrant{},
		workers: map[string]*knownWorker{}}
	s.host = &s.opts.Host
	if opts.Secret != "" {
		s.tickets = newTicketSigner(opts.Secret)
	}
	s.done.Host, s.opened = s.host, s.host.Now()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.mayServe.Store(true)
	s.done.Run(s.storeNotes)
	s.done.Run(s.giveUpWaiting)
	return s
}

// Close ends the background work. Call it after all streams have ended.
func (s *Sessions) Close() {
	s.stop()
	s.mu.Lock()
	for _, ses := range s.byID {
		ses.awaitStream(nil)
	}
	s.mu.Unlock()
	s.done.Wait()
}

// giveUpWaiting fails the jobs of workers that did not return in time after a start.
func (s *Sessions) giveUpWaiting() {
	over, stop := s.host.Timer(s.opts.Patience)
	defer stop()
	s.host.Wait(func() bool { return host.Closed(over) || s.ctx.Err() != nil })
	select {
	case <-s.ctx.Done():
		return
	case <-over:
	}
	s.mu.Lock()
	s.updateMayServe()
	failed := s.removeUnservable()
	s.mu.Unlock()
	refuseJobs(failed)
}

// Offers reports whether a matching worker is attached, or may return soon.
func (s *Sessions) Offers(exec *flow.Exec) bool {
	if !s.mayServe.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasWorkerFor(exec) || s.isWorkerAwaited(exec)
}

// updateMayServe sets whether lookups of workers are needed.
func (s *Sessions) updateMayServe() {
	s.mayServe.Store(len(s.byID)+len(s.expected)+len(s.remoteOffering) > 0 || s.elapsedSince(s.opened) < s.opts.Patience)
}

// elapsedSince returns the time since t.
func (s *Sessions) elapsedSince(t time.Time) time.Duration { return s.host.Now().Sub(t) }

// hasWorkerFor reports whether a worker for such jobs is attached, here or at another member.
func (s *Sessions) hasWorkerFor(exec *flow.Exec) bool {
	return !s.isLeaving() && slices.ContainsFunc(s.offering[exec.Service],
		func(g *sessionGroup) bool { return hasAll(g.labels, exec.Labels) }) ||
		slices.ContainsFunc(s.remoteOffering[exec.Service], func(g *remoteGroup) bool { return hasAll(g.Labels, exec.Labels) })
}

// Send gives jobs to workers of this member, passes them to another member, or queues them.
func (s *Sessions) Send(jobs []carriers.Passage) {
	var failed []carriers.Passage
	var passed []reportedJob
	var touched []*workerStream
	var then unlockedActions
	s.mu.Lock()
	for _, p := range jobs {
		job := p.Job()
		if len(s.broughtJobs) > 0 && s.parkIfBrought(p, &job, &then) {
			continue
		}
		if p.Foreign() {
			s.noteTaken(job.Exec)
		}
		if ses := s.freestSession(job.Exec); ses != nil {
			if ses.giveJob(p, &job) && !slices.Contains(touched, ses.stream) {
				touched = append(touched, ses.stream)
			}
		} else if g := s.freestRemote(job.Exec); g != nil {
			passed = append(passed, s.passJob(g, p))
		} else if s.canWait(p, job.Exec) || !s.noteRefused(p, job.Exec) {
			s.enqueueJob(p, &job)
		} else {
			failed = append(failed, p)
		}
	}
	s.mu.Unlock()
	for _, c := range touched {
		c.wakeWriter()
	}
	landReports(passed)
	refuseJobs(failed)
	s.runActions(then)
}

// canWait reports whether a job may wait here: a worker may get it, or it is recovered later.
func (s *Sessions) canWait(p carriers.Passage, exec *flow.Exec) bool {
	if s.isLeaving() {
		return !p.Foreign()
	}
	return s.hasWorkerFor(exec) || s.isWorkerAwaited(exec)
}

// refuseJobs lands jobs without a matching worker. Jobs of type http may go to a push worker, and
// jobs of other members' tasks to a worker that the owner knows.
func refuseJobs(jobs []carriers.Passage) {
	for _, p := range jobs {
		if p.Over() {
			p.Land(flow.Report{Lost: true})
			continue
		}
		switch exec := p.Job().Exec; {
		case exec.Type == flow.ExecPush, p.Foreign():
			p.Land(flow.Report{Lost: true, Unbegun: true})
		case exec.Type == flow.ExecCode:
			p.Land(flow.Report{GivenUp: &flow.GivenUp{Reason: carriers.NoFlow(exec)}})
		default:
			p.Land(flow.Report{Error: carriers.NoWorker(exec)})
		}
	}
}

// CallOff withdraws a job. The job uses a credit until the worker has answered.
func (s *Sessions) CallOff(p carriers.Passage) {
	s.mu.Lock()
	g := s.held[p]
	if g == nil {
		var then unlockedActions
		if !s.unparkJob(p, &then) {
			s.noteWithdrawn()
		}
		s.mu.Unlock()
		s.runActions(then)
		return
	}
	if g.broughtAs != nil && g.session.stream != nil {
		g.withdrawBrought(p)
		s.mu.Unlock()
		p.Land(flow.Report{Lost: true})
		return
	}
	delete(s.held, p)
	g.passage, g.job = nil, nil
	g.session.outbox.canceled = append(g.session.outbox.canceled, g.number)
	s.mu.Unlock()
	g.session.wakeWriter()
	p.Land(flow.Report{Lost: true})
}

// Shut stops new jobs from starting, and asks the workers to finish their jobs.
func (s *Sessions) Shut() { s.startLeaving(&s.shut) }

// Leave is like Shut while no streams are served. Jobs wait, and Return ends this state.
func (s *Sessions) Leave() { s.startLeaving(&s.away) }

// Return reports that streams are served again, so jobs may start.
func (s *Sessions) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
	s.markAllChanged()
}

func (s *Sessions) isLeaving() bool { return s.shut || s.away }

// startLeaving notifies the workers, and passes waiting jobs to other members. Jobs of this
// member's tasks stay if there is no other worker.
func (s *Sessions) startLeaving(how *bool) {
	s.mu.Lock()
	*how = true
	all := make([]*workerSession, 0, len(s.byID))
	for _, ses := range s.byID {
		all = append(all, ses)
	}
	s.markAllChanged()
	passed, failed := s.passWaiting(), s.removeForeign()
	s.mu.Unlock()
	for _, ses := range all {
		ses.wakeWriter()
	}
	landReports(passed)
	refuseJobs(failed)
	for _, ses := range all {
		s.endIfWaiting(ses)
	}
}

// endIfWaiting ends a session without a stream if the member stops.
func (s *Sessions) endIfWaiting(ses *workerSession) {
	s.mu.Lock()
	over := s.shut && ses.stream == nil
	s.mu.Unlock()
	if over {
		s.endSession(ses)
	}
}

// removeForeign removes and returns the waiting jobs of other members' tasks.
func (s *Sessions) removeForeign() (jobs []carriers.Passage) {
	for _, key := range s.keysByAge() {
		l := s.queues[key]
		l.jobs = slices.DeleteFunc(l.jobs, func(w waitingJob) bool {
			foreign := w.Foreign()
			if foreign {
				jobs = append(jobs, w.Passage)
			}
			return foreign
		})
		if len(l.jobs) == 0 {
			delete(s.queues, key)
		}
	}
	return jobs
}
