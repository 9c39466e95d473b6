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
	"github.com/troupe-engine/troupe/api/wire/attach"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/host"
	"github.com/troupe-engine/troupe/persistence"
)

// Options of Sessions. Zero fields mean the default.
type Options struct {
	// Grace is how long a session whose stream broke waits for its worker; 5 s. Negative: not at
	// all.
	Grace time.Duration
	// Heartbeat is how often each side gives a sign of life. Who is silent for three times as long
	// is gone; 2 s.
	Heartbeat time.Duration
	// Secret is what all members know and nobody else: it proves to one of them that a worker was
	// given a job by another one. "" = workers bring no jobs along.
	Secret string
	// MaxMessage bounds a message of a worker in bytes; 8 MiB.
	MaxMessage int64
	// Patience is how long after the start a job waits for workers that were attached before; 5 s.
	Patience time.Duration
	// Workers is where those that are attached are listed.
	Workers Workers
	// Note keeps what a worker calls the state of its job. nil = nobody does.
	Note func(ctx context.Context, task string, n flow.Note) error
	// Log begins to keep what a worker says while it is at a job. nil = nobody does.
	Log func(task, job string) Log
	// Logger; slog.Default().
	Logger *slog.Logger
	// Host is what the sessions stand on.
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

// Workers knows all workers, however they get their jobs.
type Workers interface {
	Register(ctx context.Context, w persistence.Worker) error
	Heartbeat(ctx context.Context, id string, load int) error
	Deregister(ctx context.Context, id string) error
	// Signs are what is known of a worker's life, here and at other members.
	Signs(id string) flow.Signs
	// Awaited reports whether a worker that was attached before this member began, and has not been
	// heard of since, would be there for such jobs.
	Awaited(exec *flow.Exec) bool
	// Listed reports whether a worker is listed as attached, to whatever member, and not silent,
	// that would be there for such jobs.
	Listed(exec *flow.Exec) bool
}

// Sessions are the workers that are attached to this member. They are its actors.Relay.
type Sessions struct {
	opts   Options
	host   *host.Host
	opened time.Time
	notes  chan jobNote
	ctx    context.Context // ends with Close
	stop   context.CancelFunc
	done   host.Group

	mayServe atomic.Bool // somebody is attached, or awaited: else nothing needs to be looked at

	mu          sync.Mutex
	byID        map[string]*workerSession
	expected    []*attach.Hello // of workers that are about to have a session
	groups      map[string]*sessionGroup
	offering    map[string][]*sessionGroup // by service
	queues      map[string]*waitingQueue   // jobs that wait, by whom they need
	held        map[carry.Passage]*jobGrant
	broughtJobs map[jobKey]*jobGrant    // jobs that workers have brought along, until they are settled
	earlyBytes  int                     // bytes of their results that came before
	workers     map[string]*knownWorker // workers with sessions
	turn        uint64                  // of the job that came last
	shut        bool                    // nothing new begins, and workers are told to leave
	away        bool                    // likewise, until somebody serves their streams again

	tickets *ticketSigner // nil = workers bring no jobs along
	bring   func(ctx context.Context, jobs engine.Orders) engine.Outcomes

	creditSharing
	remoteMembers  map[string]*memberCredits // by incarnation of the member
	remoteOffering map[string][]*remoteGroup // by service
}

// New has no sessions yet.
func New(opts Options) *Sessions {
	s := &Sessions{opts: opts.orDefault(), notes: make(chan jobNote, maxNotes), byID: map[string]*workerSession{},
		groups: map[string]*sessionGroup{}, offering: map[string][]*sessionGroup{}, remoteMembers: map[string]*memberCredits{}, queues: map[string]*waitingQueue{}, held: map[carry.Passage]*jobGrant{}, broughtJobs: map[jobKey]*jobGrant{}, workers: map[string]*knownWorker{}}
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

// Close ends what goes on without streams. There are none any more.
func (s *Sessions) Close() {
	s.stop()
	s.mu.Lock()
	for _, ses := range s.byID {
		ses.awaitStream(nil)
	}
	s.mu.Unlock()
	s.done.Wait()
}

// giveUpWaiting fails the jobs of workers that have not come back in time after a start.
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

// Offers reports whether a worker is attached that may get a job like this one, or is about to come
// back.
func (s *Sessions) Offers(exec *flow.Exec) bool {
	if !s.mayServe.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hasWorkerFor(exec) || s.isWorkerAwaited(exec)
}

// updateMayServe keeps whether there is anything to be looked at.
func (s *Sessions) updateMayServe() {
	s.mayServe.Store(len(s.byID)+len(s.expected)+len(s.remoteOffering) > 0 || s.elapsedSince(s.opened) < s.opts.Patience)
}

// elapsedSince is how long ago something was.
func (s *Sessions) elapsedSince(t time.Time) time.Duration { return s.host.Now().Sub(t) }

// hasWorkerFor reports whether somebody is attached, here or to another member, who may get such
// jobs.
func (s *Sessions) hasWorkerFor(exec *flow.Exec) bool {
	return !s.isLeaving() && slices.ContainsFunc(s.offering[exec.Service], func(g *sessionGroup) bool { return hasAll(g.labels, exec.Labels) }) ||
		slices.ContainsFunc(s.remoteOffering[exec.Service], func(g *remoteGroup) bool { return hasAll(g.Labels, exec.Labels) })
}

// Send gives jobs to workers here, or has them carried out at another member, or wait.
func (s *Sessions) Send(jobs []carry.Passage) {
	var failed []carry.Passage
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
		} else if s.canWait(p, job.Exec) {
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

// canWait reports whether a job may wait here: somebody may get it, or it is taken up again when
// the member comes back.
func (s *Sessions) canWait(p carry.Passage, exec *flow.Exec) bool {
	if s.isLeaving() {
		return !p.Foreign()
	}
	return s.hasWorkerFor(exec) || s.isWorkerAwaited(exec)
}

// refuseJobs lands jobs that nobody is there for. Those of type http may find a push worker, and
// those of other members' tasks somebody whom that member knows.
func refuseJobs(jobs []carry.Passage) {
	for _, p := range jobs {
		if p.Over() {
			p.Land(flow.Report{Lost: true})
			continue
		}
		switch exec := p.Job().Exec; {
		case exec.Type == flow.ExecHTTP, p.Foreign():
			p.Land(flow.Report{Lost: true, Unbegun: true})
		default:
			p.Land(flow.Report{Error: carry.NoWorker(exec)})
		}
	}
}

// CallOff withdraws a job. Its place with the worker is taken until the worker has answered.
func (s *Sessions) CallOff(p carry.Passage) {
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

// Shut has no job begin any more, and tells the workers to finish what they have.
func (s *Sessions) Shut() { s.startLeaving(&s.shut) }

// Leave is Shut for the time in which nobody serves streams: jobs wait, and Return ends it.
func (s *Sessions) Leave() { s.startLeaving(&s.away) }

// Return says that streams are served.
func (s *Sessions) Return() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = false
	s.markAllChanged()
}

func (s *Sessions) isLeaving() bool { return s.shut || s.away }

// startLeaving has the workers told, and jobs that wait carried out elsewhere. Those of the
// member's own tasks wait if nobody is there.
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

// endIfWaiting ends a session that waits for its worker, when the member ends before that comes.
func (s *Sessions) endIfWaiting(ses *workerSession) {
	s.mu.Lock()
	over := s.shut && ses.stream == nil
	s.mu.Unlock()
	if over {
		s.endSession(ses)
	}
}

// removeForeign takes out the jobs of other members' tasks that wait.
func (s *Sessions) removeForeign() (jobs []carry.Passage) {
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
