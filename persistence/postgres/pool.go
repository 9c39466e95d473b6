package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// connPool lets as many use a connection at once as it may have, and fewer while the server has no
// more to give: then they wait for one that is open. Its own bound is that of the driver's pool
// behind it.
type connPool struct {
	conns   *pgxpool.Pool
	turns   chan struct{} // to be taken by whoever wants a connection
	lender  *connPool     // gives up idle connections for this one; nil = there is none
	planAge time.Duration // for how long a connection keeps plans

	mu   sync.Mutex
	live int // turns there are; the others come back in a while
}

const (
	// fullTime is how long somebody waits for a server that has no connection to give, unless his
	// own time ends sooner.
	fullTime = 10 * time.Second
	// fullPause is how often it is asked meanwhile, if there is no connection of ours to wait for.
	fullPause = 20 * time.Millisecond
	// fullRest is how long after being refused the pool makes do with what it has.
	fullRest = time.Second
	// planAge is for how long a connection keeps plans. One that was made while a table was empty
	// reads all of it: a queue that fills again would be read with each job that leaves it, until
	// the server looks at it, perhaps in a minute.
	planAge = 5 * time.Second
)

// plansFrom is where a connection keeps when its oldest plan can have been made.
const plansFrom = "troupe: plans from"

func newPool(conns *pgxpool.Pool, size int, lender *connPool) *connPool {
	p := &connPool{conns: conns, turns: make(chan struct{}, size), lender: lender, live: size, planAge: planAge}
	for range size {
		p.turns <- struct{}{}
	}
	return p
}

// withConn waits for a connection.
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

// refreshPlans has the connection make its plans anew when they are old, for tables as large as
// they are by now.
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

// acquireConn takes a turn with the connection.
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
			_ = sleepContext(ctx, fullPause) // its end is noticed in the next round
			p.turns <- struct{}{}
		}
	}
}

// makeDo takes a turn that was had out of use for a while, so that who comes next waits for an open
// connection. It is false when there are no more turns than connections.
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

// closeIdle closes an idle connection, if there is one: somebody needs it more.
func (p *connPool) closeIdle(ctx context.Context) {
	for i, idle := range p.conns.AcquireAllIdle(ctx) {
		if i == 0 {
			_ = idle.Conn().Close(ctx) // it is gone in any case
		}
		idle.Release()
	}
}

// isFull reports whether the server has no connection to give now.
func isFull(err error) bool {
	e := new(pgconn.PgError)
	return errors.As(err, &e) && e.Code == tooManyConnections
}
