package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connPool limits the users of a pool's connections. While the server has no more connections, it
// lowers the limit, and callers wait for an open one. The driver's pool has the same limit.
type connPool struct {
	conns   *pgxpool.Pool
	turns   chan struct{} // one token per connection, for its user
	lender  *connPool     // closes idle connections for this pool; nil means none
	planAge time.Duration // maximum age of the plans of a connection

	mu   sync.Mutex
	live int // number of turns in use; the others return after fullRest
}

const (
	// fullTime is how long a caller waits for a server without free connections, unless its context
	// ends sooner.
	fullTime = 10 * time.Second
	// fullPause is the pause between tries if this pool has no connection to wait for.
	fullPause = 20 * time.Millisecond
	// fullRest is how long the pool uses fewer connections after a refusal.
	fullRest = time.Second
	// planAge is how long a connection keeps plans. A plan that was made for an empty table reads
	// the whole table. When a queue grows again, each job would read the whole queue until the
	// server updates its statistics.
	planAge = 5 * time.Second
)

// plansFrom is the key for the earliest time of the plans in the data of a connection.
const plansFrom = "troupe: plans from"

func newPool(conns *pgxpool.Pool, size int, lender *connPool) *connPool {
	p := &connPool{conns: conns, turns: make(chan struct{}, size), lender: lender, live: size, planAge: planAge}
	for range size {
		p.turns <- struct{}{}
	}
	return p
}

// withConn waits for a connection and calls do with it.
func (p *connPool) withConn(ctx context.Context, do func(*pgxpool.Conn) error) error {
	conn, err := p.acquireConn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		conn.Release()
		p.turns <- struct{}{}
	}()
	if err := p.refreshPlans(ctx, conn); err != nil {
		return err
	}
	return do(conn)
}

// refreshPlans discards old plans of a connection, so that new ones fit the current sizes of
// tables.
func (p *connPool) refreshPlans(ctx context.Context, conn *pgxpool.Conn) error {
	kept, now := conn.Conn().PgConn().CustomData(), time.Now()
	from, known := kept[plansFrom].(time.Time)
	if known && now.Sub(from) < p.planAge {
		return nil
	}
	kept[plansFrom] = now
	if !known {
		return nil
	}
	return conn.Conn().PgConn().Exec(ctx, "DISCARD PLANS").Close()
}

// acquireConn takes a turn and a connection.
func (p *connPool) acquireConn(ctx context.Context) (*pgxpool.Conn, error) {
	for begun := time.Now(); ; {
		select {
		case <-p.turns:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		conn, err := p.conns.Acquire(ctx)
		switch {
		case err == nil:
			return conn, nil
		case !isFull(err) || time.Since(begun) > fullTime:
			p.turns <- struct{}{}
			return nil, err
		}
		if p.lender != nil {
			p.lender.closeIdle(ctx)
		}
		if !p.makeDo() {
			_ = sleepContext(ctx, fullPause) // the next round checks whether ctx has ended
			p.turns <- struct{}{}
		}
	}
}

// makeDo takes one turn out of use for fullRest, so that the next caller waits for an open
// connection. It returns false if there are no more turns than connections.
func (p *connPool) makeDo() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	stat := p.conns.Stat()
	if p.live <= max(1, int(stat.AcquiredConns()+stat.IdleConns())) {
		return false
	}
	p.live--
	time.AfterFunc(fullRest, func() {
		p.mu.Lock()
		p.live++
		p.mu.Unlock()
		p.turns <- struct{}{}
	})
	return true
}

// closeIdle closes an idle connection, if there is one, so that another pool can open one.
func (p *connPool) closeIdle(ctx context.Context) {
	for i, idle := range p.conns.AcquireAllIdle(ctx) {
		if i == 0 {
			_ = idle.Conn().Close(ctx) // the connection is closed even after an error
		}
		idle.Release()
	}
}

// isFull reports whether the server has no free connection now.
func isFull(err error) bool {
	e := new(pgconn.PgError)
	return errors.As(err, &e) && e.Code == tooManyConnections
}
