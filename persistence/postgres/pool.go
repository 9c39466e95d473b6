package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connPool limits the users of a pool's connections, and lowers that limit while the server has no
// more connections; then callers wait for an open one. The driver's pool behind it has the same
// limit.
type connPool struct {
	conns   *pgxpool.Pool
	turns   chan struct{} // tokens, one per connection; a caller takes one
	lender  *connPool     // gives up idle connections for this pool; nil = none
	planAge time.Duration // maximum age of a connection's plans

	mu   sync.Mutex
	live int // number of turns in use; the others return after a while
}

const (
	// fullTime is how long a caller waits for a server without free connections, unless its context
	// ends sooner.
	fullTime = 10 * time.Second
	// fullPause is the pause between tries if there is no connection of ours to wait for.
	fullPause = 20 * time.Millisecond
	// fullRest is how long after a refusal the pool works with fewer connections.
	fullRest = time.Second
	// planAge is how long a connection keeps plans. A plan made while a table was empty reads all
	// of it. When a queue fills again, each job that leaves it would read the whole queue, until
	// the server updates its statistics, perhaps in a minute.
	planAge = 5 * time.Second
)

// plansFrom is the key under which a connection stores the earliest time of its plans.
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

// refreshPlans discards the connection's plans when they are old, so that new ones fit the current
// sizes of tables.
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
			_ = sleepContext(ctx, fullPause) // the next round notices that ctx has ended
			p.turns <- struct{}{}
		}
	}
}

// makeDo takes one turn out of use for a while, so that the next caller waits for an open
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

// closeIdle closes an idle connection, if there is one, because another pool needs it more.
func (p *connPool) closeIdle(ctx context.Context) {
	for i, idle := range p.conns.AcquireAllIdle(ctx) {
		if i == 0 {
			_ = idle.Conn().Close(ctx) // it is closed in any case
		}
		idle.Release()
	}
}

// isFull reports whether the server has no free connection now.
func isFull(err error) bool {
	e := new(pgconn.PgError)
	return errors.As(err, &e) && e.Code == tooManyConnections
}
