package sim

import (
	"context"
	"errors"
	"time"

	"github.com/troupe-engine/troupe/persistence"
)

// storeConn is a host's connection to the store: slow, and sometimes closed in one direction. The
// persistence.Store behind the connection is the model, or a defective store that the checks have
// to detect.
type storeConn struct {
	persistence.Store
	w *simWorld
	h *host

	// Set if a store that went back in time is reached only over new connections:
	base    *storeModel     // nil if not used
	rewinds int             // number of rewinds of the store when the connection was opened
	seen    map[string]bool // histories of the store that this connection has seen
}

var (
	errLost = errors.New("sim: the connection to the store broke")
	errDown = errors.New("sim: this host has crashed")
)

// delayCall simulates the time of one direction of a store call.
func (d *storeConn) delayCall() {
	d.w.yieldOnce()
	switch {
	case d.h.dead:
	case d.w.drawFault(d.w.faults.stalls), d.h.cutFromStore:
		d.w.sleepFor(d.w.upTo(4 * time.Second))
	case d.w.drawChance(500):
		d.w.sleepFor(d.w.upTo(d.w.faults.latency))
	}
}

// sendRequest simulates the request. A crashed host sends none.
func (d *storeConn) sendRequest() error {
	d.delayCall()
	switch {
	case d.h.dead:
		return errDown
	case d.w.drawFault(d.w.faults.lost), d.h.cutFromStore:
		return errLost
	}
	d.reconnectStore()
	return nil
}

// returnAnswer simulates the answer.
func (d *storeConn) returnAnswer(err error) error {
	d.delayCall()
	switch {
	case d.h.dead:
		return errDown
	case d.w.drawFault(d.w.faults.unknown), d.h.cutFromStore:
		return errLost
	}
	return err
}

// callStore simulates a request and its answer.
func callStore[T any](d *storeConn, ask func() (T, error)) (T, error) {
	var none T
	if err := d.sendRequest(); err != nil {
		return none, err
	}
	answer, err := ask()
	if err = d.returnAnswer(err); err != nil {
		return none, err
	}
	return answer, nil
}

// Commit may also be abandoned by the sender in flight; then it is written late, or never.
func (d *storeConn) Commit(ctx context.Context, incarnation string, batch []persistence.Commit) ([]error, error) {
	d.delayCall()
	switch {
	case d.h.dead && d.w.drawChance(500), !d.h.dead && d.w.drawFault(d.w.faults.strays):
		d.strayCommit(ctx, incarnation, batch)
		return nil, errLost
	case d.h.dead:
		return nil, errDown
	case d.w.drawFault(d.w.faults.lost), d.h.cutFromStore:
		return nil, errLost
	}
	d.reconnectStore()
	answers, err := d.Store.Commit(ctx, incarnation, batch)
	if err = d.returnAnswer(err); err != nil {
		return nil, err
	}
	return answers, nil
}

// strayCommit writes an abandoned batch later. Only a fence may prevent it.
func (d *storeConn) strayCommit(ctx context.Context, incarnation string, batch []persistence.Commit) {
	rewinds := d.w.rewinds
	d.w.callAfter(nil, d.w.upTo(3*time.Second), func() {
		if d.w.rewinds != rewinds {
			return // the call was sent to the state before the rewind
		}
		answers, err := d.Store.Commit(context.WithoutCancel(ctx), incarnation, batch)
		d.w.addTrace("a stray batch of %s arrives: %v %v", incarnation, answers, err)
	})
}

func (d *storeConn) Join(ctx context.Context, j persistence.Joining) (string, error) {
	return callStore(d, func() (string, error) { return d.Store.Join(ctx, j) })
}

func (d *storeConn) Renew(ctx context.Context, incarnation string, ttl time.Duration) (persistence.Pulse, error) {
	return callStore(d, func() (persistence.Pulse, error) { return d.Store.Renew(ctx, incarnation, ttl) })
}

func (d *storeConn) BeginHistory(ctx context.Context, known string, kept int64) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.BeginHistory(ctx, known, kept) })
	return err
}

func (d *storeConn) Cluster(ctx context.Context) (*persistence.Cluster, error) {
	return callStore(d, func() (*persistence.Cluster, error) { return d.Store.Cluster(ctx) })
}

func (d *storeConn) Claim(ctx context.Context, incarnation string, shards []int) ([]int, error) {
	return callStore(d, func() ([]int, error) { return d.Store.Claim(ctx, incarnation, shards) })
}

func (d *storeConn) Release(ctx context.Context, incarnation string, transfers []persistence.Transfer) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.Release(ctx, incarnation, transfers) })
	return err
}

func (d *storeConn) Drain(ctx context.Context, incarnation string, drains bool) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.Drain(ctx, incarnation, drains) })
	return err
}

func (d *storeConn) Fence(ctx context.Context, incarnation string) (bool, error) {
	return callStore(d, func() (bool, error) { return d.Store.Fence(ctx, incarnation) })
}

func (d *storeConn) Leave(ctx context.Context, incarnation string) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.Leave(ctx, incarnation) })
	return err
}

func (d *storeConn) Load(ctx context.Context, ids []string) ([]*persistence.Record, error) {
	return callStore(d, func() ([]*persistence.Record, error) { return d.Store.Load(ctx, ids) })
}

func (d *storeConn) Rows(ctx context.Context, task string, after int64, p persistence.Part) ([]persistence.Row, error) {
	return callStore(d, func() ([]persistence.Row, error) { return d.Store.Rows(ctx, task, after, p) })
}

func (d *storeConn) Task(ctx context.Context, id string) (*persistence.TaskRow, error) {
	return callStore(d, func() (*persistence.TaskRow, error) { return d.Store.Task(ctx, id) })
}

func (d *storeConn) Unfinished(ctx context.Context, shards persistence.ShardSet, after string, limit int) ([]string, error) {
	return callStore(d, func() ([]string, error) { return d.Store.Unfinished(ctx, shards, after, limit) })
}

func (d *storeConn) DueWakes(ctx context.Context, shards persistence.ShardSet, before int64, limit int) ([]persistence.Wake, error) {
	return callStore(d, func() ([]persistence.Wake, error) { return d.Store.DueWakes(ctx, shards, before, limit) })
}

func (d *storeConn) QueueRows(ctx context.Context, services []string, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return callStore(d, func() ([]persistence.QueueRow, error) {
		return d.Store.QueueRows(ctx, services, afterAt, afterTurn, limit)
	})
}

func (d *storeConn) Flow(ctx context.Context, id string) (*persistence.Flow, error) {
	return callStore(d, func() (*persistence.Flow, error) { return d.Store.Flow(ctx, id) })
}

func (d *storeConn) CreateFlow(ctx context.Context, f persistence.Flow) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.CreateFlow(ctx, f) })
	return err
}

func (d *storeConn) FlowBySlug(ctx context.Context, slug string) (*persistence.Flow, error) {
	return callStore(d, func() (*persistence.Flow, error) { return d.Store.FlowBySlug(ctx, slug) })
}

func (d *storeConn) CreateVersion(ctx context.Context, v persistence.Version) error {
	_, err := callStore(d, func() (bool, error) { return true, d.Store.CreateVersion(ctx, v) })
	return err
}

func (d *storeConn) FindVersion(ctx context.Context, flowID string, number int) (*persistence.Version, error) {
	return callStore(d, func() (*persistence.Version, error) { return d.Store.FindVersion(ctx, flowID, number) })
}

func (d *storeConn) DeleteFlow(ctx context.Context, id string, limit int) (int, error) {
	return callStore(d, func() (int, error) { return d.Store.DeleteFlow(ctx, id, limit) })
}

func (d *storeConn) QueueServices(ctx context.Context) ([]string, error) {
	return callStore(d, func() ([]string, error) { return d.Store.QueueServices(ctx) })
}

func (d *storeConn) QueueFor(ctx context.Context, f persistence.QueueFilter, afterAt int64,
	afterTurn string, limit int) ([]persistence.QueueRow, error) {
	return callStore(d, func() ([]persistence.QueueRow, error) { return d.Store.QueueFor(ctx, f, afterAt, afterTurn, limit) })
}

func (d *storeConn) Version(ctx context.Context, id string) (*persistence.Version, error) {
	return callStore(d, func() (*persistence.Version, error) { return d.Store.Version(ctx, id) })
}
