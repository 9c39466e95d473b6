package sim

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// door is one host's way to the store: slow, and sometimes closed in one direction. persistence.Store
// behind it is the model, or a broken one that the checks have to catch.
type door struct {
	persistence.Store
	w *world
	h *host

	// Where a server that went back is reached over new connections only:
	base    *model          // nil = it is not
	rewinds int             // of the store, as of the connection
	seen    map[string]bool // histories that the store was in when it was asked
}

var (
	errLost = errors.New("sim: the connection to the store broke")
	errDown = errors.New("sim: this host has crashed")
)

// travel is the way there or back.
func (d *door) travel() {
	d.w.breathe()
	switch {
	case d.h.dead:
	case d.w.mishap(d.w.weather.stalls), d.h.lonely:
		d.w.sleep(d.w.upTo(4 * time.Second))
	case d.w.chance(500):
		d.w.sleep(d.w.upTo(d.w.weather.latency))
	}
}

// arrive is the way there. A host that has crashed asks for nothing.
func (d *door) arrive() error {
	d.travel()
	switch {
	case d.h.dead:
		return errDown
	case d.w.mishap(d.w.weather.lost), d.h.lonely:
		return errLost
	}
	d.connect()
	return nil
}

// back is the way back.
func (d *door) back(err error) error {
	d.travel()
	switch {
	case d.h.dead:
		return errDown
	case d.w.mishap(d.w.weather.unknown), d.h.lonely:
		return errLost
	}
	return err
}

// call is a question and its answer.
func call[T any](d *door, ask func() (T, error)) (T, error) {
	var none T
	if err := d.arrive(); err != nil {
		return none, err
	}
	answer, err := ask()
	if err = d.back(err); err != nil {
		return none, err
	}
	return answer, nil
}

// Commit may also be given up by the one who sends it while it is on its way: then it is written late,
// or never.
func (d *door) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	d.travel()
	switch {
	case d.h.dead && d.w.chance(500), !d.h.dead && d.w.mishap(d.w.weather.strays):
		d.stray(ctx, incarnation, batch)
		return nil, errLost
	case d.h.dead:
		return nil, errDown
	case d.w.mishap(d.w.weather.lost), d.h.lonely:
		return nil, errLost
	}
	d.connect()
	answers, err := d.Store.Commit(ctx, incarnation, batch)
	if err = d.back(err); err != nil {
		return nil, err
	}
	return answers, nil
}

// stray writes a batch some time, for nobody. It may be the fence that stops it.
func (d *door) stray(ctx context.Context, incarnation string, batch []persistence.Commit) {
	rewinds := d.w.rewinds
	d.w.after(nil, d.w.upTo(3*time.Second), func() {
		if d.w.rewinds != rewinds {
			return // it was for the server, or the state, before
		}
		answers, err := d.Store.Commit(context.WithoutCancel(ctx), incarnation, batch)
		d.w.say("a stray batch of %s arrives: %v %v", incarnation, answers, err)
	})
}

func (d *door) Join(ctx context.Context, j persistence.Joining) (string, error) {
	return call(d, func() (string, error) { return d.Store.Join(ctx, j) })
}

func (d *door) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	return call(d, func() (persistence.Pulse, error) { return d.Store.Renew(ctx, incarnation, ttl) })
}

func (d *door) BeginHistory(ctx context.Context, known string, kept int64) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.BeginHistory(ctx, known, kept) })
	return err
}

func (d *door) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	return call(d, func() (*persistence.Cluster, error) { return d.Store.Cluster(ctx) })
}

func (d *door) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	return call(d, func() ([]int, error) { return d.Store.Claim(ctx, incarnation, shards) })
}

func (d *door) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.Release(ctx, incarnation, transfers) })
	return err
}

func (d *door) Drain(ctx context.Context, incarnation string, drains bool) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.Drain(ctx, incarnation, drains) })
	return err
}

func (d *door) Fence(ctx context.Context, incarnation string) (bool, error) {
	return call(d, func() (bool, error) { return d.Store.Fence(ctx, incarnation) })
}

func (d *door) Leave(ctx context.Context, incarnation string) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.Leave(ctx, incarnation) })
	return err
}

func (d *door) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	return call(d, func() ([]*persistence.Record, error) { return d.Store.Load(ctx, ids) })
}

func (d *door) Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	return call(d, func() ([]persistence.Row, error) { return d.Store.Rows(ctx, task, after, p) })
}

func (d *door) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	return call(d, func() (*persistence.TaskRow, error) { return d.Store.Task(ctx, id) })
}

func (d *door) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return call(d, func() ([]string, error) { return d.Store.Unfinished(ctx, shards, after, limit) })
}

func (d *door) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	return call(d, func() ([]persistence.Wake, error) { return d.Store.DueWakes(ctx, shards, before, limit) })
}

func (d *door) QueueRows(ctx context.Context, services []string, afterAt int64, afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return call(d, func() ([]persistence.QueueRow, error) {
		return d.Store.QueueRows(ctx, services, afterAt, afterTurn, limit)
	})
}

func (d *door) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	return call(d, func() (*persistence.Flow, error) { return d.Store.Flow(ctx, id) })
}

func (d *door) CreateFlow(ctx context.Context, f persistence.Flow) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.CreateFlow(ctx, f) })
	return err
}

func (d *door) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	return call(d, func() (*persistence.Flow, error) { return d.Store.FlowBySlug(ctx, slug) })
}

func (d *door) CreateVersion(ctx context.Context, v persistence.Version) error {
	_, err := call(d, func() (bool, error) { return true, d.Store.CreateVersion(ctx, v) })
	return err
}

func (d *door) FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error) {
	return call(d, func() (*persistence.Version, error) { return d.Store.FindVersion(ctx, flowID, number) })
}

func (d *door) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	return call(d, func() (int, error) { return d.Store.DeleteFlow(ctx, id, limit) })
}

func (d *door) QueueServices(ctx context.Context) ([]string, error) {
	return call(d, func() ([]string, error) { return d.Store.QueueServices(ctx) })
}

func (d *door) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64, afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return call(d, func() ([]persistence.QueueRow, error) { return d.Store.QueueFor(ctx, f, afterAt, afterTurn, limit) })
}

func (d *door) Version(ctx context.Context, id string) (*persistence.Version, error) {
	return call(d, func() (*persistence.Version, error) { return d.Store.Version(ctx, id) })
}
