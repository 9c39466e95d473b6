package workers

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/bounded"
	"github.com/troupe-engine/troupe/persistence"
)

// Options configure a Registry. Zero fields mean the default.
type Options struct {
	// OfflineTTL is the maximum age of the last heartbeat of a worker that gets jobs. Default 15 s.
	OfflineTTL time.Duration
	// Refresh is how often heartbeats are written to the store. Default 5 s.
	Refresh time.Duration
	// Learn is how often the workers of other members are read from the store; 0 means never.
	Learn time.Duration
	// Tell announces a registered or departed worker to other members, before the worker's request
	// is answered. They call Hear. Members that the announcement does not reach read the store. nil
	// means that there are no other members.
	Tell func(ctx context.Context, w persistence.Worker, gone bool)
	// Beat announces a heartbeat to other members, which call HearBeat. With again, it waits until
	// they have it, because the worker had counted as gone. nil means that there are no other
	// members.
	Beat func(ctx context.Context, b persistence.Heartbeat, again bool)
	// Forget is how long a silent worker is kept. Default 7 days.
	Forget time.Duration
	// Allow lists the networks that worker URLs may point into. Loopback is always allowed,
	// link-local never.
	Allow []netip.Prefix
	// TLS returns the configuration for connections to workers with https URLs. If nil, the
	// system's certificates are trusted, and no client certificate is sent.
	TLS func() *tls.Config
	// CallTimeout bounds a call to one worker, unless the job's timeout is longer. Default 10 s.
	CallTimeout time.Duration
	// MaxAnswer bounds a worker's answer in bytes; the default is slightly more than the limit of a
	// value.
	MaxAnswer int
	// Standby lists ids of workers that get no jobs of a service while another live worker offers
	// it.
	Standby []string
	// Self is this member's name, and Functions returns its local functions. The member is listed
	// as a worker of type local, unless Self is empty.
	Self      string
	Functions func() []string
	// Now returns the store's time in Unix milliseconds; nil means this host's clock.
	Now func() int64
	// Logger is the log; nil means slog.Default().
	Logger *slog.Logger
}

func (o Options) orDefault() Options {
	o.OfflineTTL = cmp.Or(o.OfflineTTL, 15*time.Second)
	o.Refresh = cmp.Or(o.Refresh, 5*time.Second)
	o.Forget = cmp.Or(o.Forget, 7*24*time.Hour)
	o.CallTimeout = cmp.Or(o.CallTimeout, 10*time.Second)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, flow.DefaultLimits.Value+64<<10)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Tell == nil {
		o.Tell = func(context.Context, persistence.Worker, bool) {}
	}
	if o.Beat == nil {
		o.Beat = func(context.Context, persistence.Heartbeat, bool) {}
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixMilli() }
	}
	return o
}

// Registry holds the workers that a member knows of.
type Registry struct {
	opts   Options
	store  persistence.Workers
	client *http.Client
	opened time.Time

	seed  maphash.Seed
	turns [64]sync.Mutex // order the changes of one id equally in store and memory

	mu      sync.RWMutex
	byID    map[string]*registeredWorker
	removed removedWorkers
	ordered []*registeredWorker // by first registration
	// push workers by service, in order of first registration
	push map[string][]*registeredWorker

	lines    bounded.Lines // limits log lines about workers
	refusals bounded.Once

	refreshLock chan struct{} // holds a token while the store is read
	refreshedAt time.Time     // start of the last read of the store
	missed      chan struct{} // signals that another member has heard an unknown worker
	changes     atomic.Int64  // number of registration changes started or finished here

	stop context.CancelFunc
	done sync.WaitGroup
}

// registeredWorker is one registration, which never changes. Changing values are in workerLiveness.
type registeredWorker struct {
	persistence.Worker
	ordinal int // order of first registration
	batcher callBatcher
	*workerLiveness
}

// workerLiveness holds a worker's signs of life. It survives a new registration of the worker.
type workerLiveness struct {
	heartbeatAt   atomic.Int64 // Unix milliseconds
	load          atomic.Int64 // as reported by the worker
	calls         atomic.Int64 // this member's calls in flight
	joined        atomic.Int64 // time of its last registration; 0 if unknown
	polled        atomic.Int64 // time of its last known poll
	heard         atomic.Bool  // heard by this registry; earlier heartbeats are from the store
	unsaved       atomic.Bool
	takesBatches  atomic.Bool // the worker accepts several jobs per request
	silent        atomic.Bool // the last call got no answer
	loggedOffline atomic.Bool // logged as offline
}

// Open reads the known workers and keeps the registry up to date until Close.
func Open(ctx context.Context, store persistence.Workers, opts Options) (*Registry, error) {
	r := &Registry{opts: opts.orDefault(), store: store, opened: time.Now(), seed: maphash.MakeSeed(),
		byID: map[string]*registeredWorker{}, push: map[string][]*registeredWorker{},
		refreshLock: make(chan struct{}, 1), missed: make(chan struct{}, 1)}
	r.client = newClient(r.allowedNetworks(), r.opts.TLS)
	known, err := store.ListWorkers(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the known workers: %w", err)
	}
	for _, w := range known {
		p := &workerLiveness{}
		p.mergeStored(w)
		r.putWorker(w, p)
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.done.Go(func() {
		r.repeatEvery(ctx, r.opts.Refresh, r.saveAndForget, "storing heartbeats of workers failed, retrying")
	})
	if r.opts.Learn > 0 {
		r.done.Go(func() {
			r.repeatEvery(ctx, r.opts.Learn, r.refreshWorkers, "reading the workers of other members failed, retrying")
		})
		r.done.Go(func() { r.refreshMissed(ctx) })
	}
	return r, nil
}

// Close writes the unsaved heartbeats.
func (r *Registry) Close(ctx context.Context) error {
	r.stop()
	r.done.Wait()
	r.client.CloseIdleConnections()
	return r.saveHeartbeats(ctx)
}

// Register adds or replaces a worker. A replaced worker keeps its position and the time of its
// first registration.
func (r *Registry) Register(ctx context.Context, w persistence.Worker) error {
	err := r.registerWorker(ctx, w)
	r.logRegistration(ctx, w, err)
	return err
}

func (r *Registry) registerWorker(ctx context.Context, w persistence.Worker) error {
	w.Type = cmp.Or(w.Type, "http")
	if err := r.checkWorker(ctx, &w); err != nil {
		return err
	}
	if err := r.storeRegistration(ctx, &w); err != nil {
		return err
	}
	r.opts.Tell(ctx, w, false)
	return nil
}

// storeRegistration stores a registration, and then applies it.
func (r *Registry) storeRegistration(ctx context.Context, w *persistence.Worker) error {
	defer r.takeTurn(w.ID)()
	w.Load, w.LastHeartbeat = 0, r.opts.Now()
	w.RegisteredAt, w.JoinedAt = w.LastHeartbeat, w.LastHeartbeat
	p := &workerLiveness{}
	if old := r.findWorker(w.ID); old != nil {
		w.RegisteredAt, p = old.RegisteredAt, old.workerLiveness
	} else if err := r.makeRoom(ctx); err != nil {
		return err
	}
	if err := r.store.PutWorker(ctx, *w); err != nil {
		return fmt.Errorf("store worker %q: %w", w.ID, err)
	}
	p.joined.Store(w.JoinedAt)
	p.recordHeartbeat(w.LastHeartbeat, 0)
	r.putWorker(*w, p)
	return nil
}

// Deregister removes a worker, which then gets no more jobs. It returns flow.NotFound for an
// unknown id.
func (r *Registry) Deregister(ctx context.Context, id string) error {
	w, err := r.deleteWorker(ctx, id)
	if err != nil {
		return err
	}
	if w != nil { // the worker may have been removed after a long silence
		r.logEvent("worker is gone", id)
		r.opts.Tell(ctx, w.publicView(), true)
	}
	return nil
}

// deleteWorker deletes a worker, and returns it.
func (r *Registry) deleteWorker(ctx context.Context, id string) (*registeredWorker, error) {
	defer r.takeTurn(id)()
	if r.findWorker(id) == nil && (!r.refreshNow(ctx) || r.findWorker(id) == nil) {
		return nil, errUnknownWorker(id)
	}
	if err := r.store.DeleteWorker(ctx, id); err != nil {
		return nil, fmt.Errorf("delete worker %q: %w", id, err)
	}
	return r.removeByID(id), nil
}

// removeByID removes and returns a worker; nil if there is none.
func (r *Registry) removeByID(id string) *registeredWorker {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.byID[id]
	if w != nil {
		r.removed.addRemoved(id, w.joined.Load(), r.opts.Now())
		r.removeWorker(w)
	}
	return w
}

// takeTurn waits until no other change with this id is in progress. The caller must call done.
func (r *Registry) takeTurn(id string) (done func()) {
	turn := &r.turns[maphash.String(r.seed, id)%uint64(len(r.turns))]
	turn.Lock()
	r.changes.Add(1)
	return func() {
		r.changes.Add(1)
		turn.Unlock()
	}
}

func errUnknownWorker(id string) error {
	return flow.Errorf(flow.NotFound, "no worker %.80q is registered", id)
}

// Heartbeat records a worker's heartbeat. It returns flow.NotFound for an unknown id.
func (r *Registry) Heartbeat(ctx context.Context, id string, load int) error {
	w := r.findWorker(id)
	if w == nil && r.refreshNow(ctx) { // the worker may have registered at another member
		w = r.findWorker(id)
	}
	if w == nil {
		return errUnknownWorker(id)
	}
	now := r.opts.Now()
	again := now-w.heartbeatAt.Load() > r.opts.OfflineTTL.Milliseconds()
	w.recordHeartbeat(now, load)
	w.unsaved.Store(true)
	r.opts.Beat(ctx, persistence.Heartbeat{ID: id, Load: int(w.load.Load()), At: w.heartbeatAt.Load()}, again)
	return nil
}

func (p *workerLiveness) recordHeartbeat(now int64, load int) {
	p.heartbeatAt.Store(max(now, p.heartbeatAt.Load()))
	p.load.Store(int64(max(load, 0)))
	p.heard.Store(true)
}

// Polled records that a worker polls for jobs.
func (r *Registry) Polled(id string) {
	if w := r.findWorker(id); w != nil {
		w.polled.Store(r.opts.Now())
		w.unsaved.Store(true) // the owners of its claims need the time of the poll
	}
}

// Signs returns the signs of life of a worker.
func (r *Registry) Signs(id string) flow.Signs {
	w := r.findWorker(id)
	if w == nil {
		return flow.Signs{}
	}
	return flow.Signs{Heard: w.heartbeatAt.Load(), Joined: w.joined.Load(), Polled: w.polled.Load()}
}

// List returns the workers in order of first registration. The entry for this member's functions
// comes first.
func (r *Registry) List(context.Context) ([]persistence.Worker, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]persistence.Worker, 0, len(r.ordered)+1)
	if r.opts.Self != "" {
		list = append(list, r.localWorker())
	}
	for _, w := range r.ordered {
		list = append(list, w.publicView())
	}
	return list, nil
}

func (r *Registry) localWorker() persistence.Worker {
	w := persistence.Worker{ID: r.opts.Self, URL: "local", Type: "local", LastHeartbeat: r.opts.Now()}
	if r.opts.Functions != nil {
		w.Services = r.opts.Functions()
	}
	return w
}

// publicView returns a worker without its secret, with its current load and last heartbeat.
func (w *registeredWorker) publicView() persistence.Worker {
	k := w.Worker
	k.Secret, k.Load, k.LastHeartbeat, k.JoinedAt = "", int(w.load.Load()), w.heartbeatAt.Load(), w.joined.Load()
	return k
}

func (r *Registry) findWorker(id string) *registeredWorker {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[id]
}

// putWorker replaces a worker or adds it after all others.
func (r *Registry) putWorker(w persistence.Worker, p *workerLiveness) {
	w.Services, w.Labels = slices.Clone(w.Services), sortedUnique(w.Labels)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putWorkerLocked(w, p)
}

// putWorkerLocked adds a worker to all indexes. The caller holds the lock.
func (r *Registry) putWorkerLocked(w persistence.Worker, p *workerLiveness) {
	k := &registeredWorker{Worker: w, workerLiveness: p}
	if old := r.byID[w.ID]; old != nil {
		k.ordinal = old.ordinal
		r.removeWorker(old)
	} else if n := len(r.ordered); n > 0 {
		k.ordinal = r.ordered[n-1].ordinal + 1
	}
	r.byID[w.ID] = k
	r.ordered = insertWorker(r.ordered, k)
	for _, service := range k.calledFor() {
		r.push[service] = insertWorker(r.push[service], k)
	}
}

func (r *Registry) removeWorker(w *registeredWorker) {
	delete(r.byID, w.ID)
	r.ordered = withoutWorker(r.ordered, w)
	for _, service := range w.calledFor() {
		if r.push[service] = withoutWorker(r.push[service], w); len(r.push[service]) == 0 {
			delete(r.push, service)
		}
	}
}

// calledFor returns the services for which a worker is called, without duplicates. Only workers of
// type http are called.
func (w *registeredWorker) calledFor() []string {
	if w.Type != "http" {
		return nil
	}
	return slices.Compact(slices.Sorted(slices.Values(w.Services)))
}

// hasAll reports whether a worker has all labels that a job requires.
func (w *registeredWorker) hasAll(labels []string) bool {
	for _, label := range labels {
		if _, has := slices.BinarySearch(w.Labels, label); !has {
			return false
		}
	}
	return true
}

func (w *registeredWorker) execURL() string { return strings.TrimRight(w.URL, "/") + "/exec/" }

func insertWorker(list []*registeredWorker, w *registeredWorker) []*registeredWorker {
	i, _ := slices.BinarySearchFunc(list, w, byOrdinal)
	return slices.Insert(list, i, w)
}

func withoutWorker(list []*registeredWorker, w *registeredWorker) []*registeredWorker {
	if i, ok := slices.BinarySearchFunc(list, w, byOrdinal); ok {
		return slices.Delete(list, i, i+1)
	}
	return list
}

func byOrdinal(a, b *registeredWorker) int { return cmp.Compare(a.ordinal, b.ordinal) }
