package postgres

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/troupe-engine/troupe/persistence"
)

// historyChecker remembers confirmed writes of this process and looks for them on every new
// connection. If they are missing, or the server is different, the store's history has ended. Then
// it begins a new history on that connection before anything else is sent. So no member writes to a
// server based on the state of another one.
type historyChecker struct {
	confirmedWrites

	begins sync.Mutex // held while a new history begins

	mu              sync.Mutex
	connected       bool            // a connection was opened before
	from            serverOrigin    // origin of the connections that may be used
	histories       map[string]bool // all histories of the store that this process has seen
	takeover        *persistence.Takeover
	takeoverHistory string // history that began after the takeover
}

// confirmedWrites holds the last confirmed writes. A stored lease renewal proves all writes that
// were confirmed before the renewal was sent, because a server only loses the end of its log.
type confirmedWrites struct {
	mu          sync.Mutex
	incarnation string // incarnation of the last renewal; "" means none
	renewals    int64
	commits     []confirmedCommit // one commit of each batch since the last renewal was sent
	n           int64             // number of commits so far
}

// confirmedCommit is a row of a journal that the store has confirmed. It is no proof in a later
// era, because the task may have been deleted with its flow.
type confirmedCommit struct {
	n, seq, era int64
	task        string
}

// mostEvidence is the number of last commits that are remembered.
const mostEvidence = 256

// recordBatch remembers one row of a confirmed batch.
func (e *confirmedWrites) recordBatch(batch []persistence.Commit, answers []error, era int64) {
	for i := range batch {
		if c := &batch[i]; answers[i] == nil && c.Events != nil {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.n++
			e.commits = append(e.commits, confirmedCommit{e.n, c.Seq, era, c.Task})
			if len(e.commits) > mostEvidence {
				e.commits = append(e.commits[:0:0], e.commits[1:]...)
			}
			return
		}
	}
}

// renewalMark returns the current mark for recordRenewal. Call it before the renewal is sent.
func (e *confirmedWrites) renewalMark() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

// recordRenewal records a confirmed renewal, which replaces all earlier evidence.
func (e *confirmedWrites) recordRenewal(incarnation string, renewals, before int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incarnation, e.renewals = incarnation, renewals
	for len(e.commits) > 0 && e.commits[0].n <= before {
		e.commits = e.commits[1:]
	}
}

// forgetAll drops all remembered writes when their history or member has ended.
func (e *confirmedWrites) forgetAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.incarnation, e.renewals, e.commits = "", 0, nil
}

// queryParams returns the remembered writes as parameters of a query.
func (e *confirmedWrites) queryParams() (incarnation string, renewals int64, tasks []string, seqs, eras []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	tasks, seqs, eras = []string{}, []int64{}, []int64{}
	for _, c := range e.commits {
		tasks, seqs, eras = append(tasks, c.task), append(seqs, c.seq), append(eras, c.era)
	}
	return e.incarnation, e.renewals, tasks, seqs, eras
}

// lookForLease and lookForCommits read the store's history and whether remembered writes are
// missing. lookForCommits also reads commits, so it waits if the journal is locked.
const (
	lookForLease   = `SELECT c.history, $1 <> '' AND NOT EXISTS (SELECT FROM troupe.leases WHERE incarnation = $1 AND renewals >= $2)`
	lookForCommits = lookForLease +
		` OR EXISTS (SELECT FROM unnest($3::text[], $4::bigint[], $5::bigint[]) AS x (task, seq, era) WHERE x.era >= c.era
		AND NOT EXISTS (SELECT FROM troupe.task_events e WHERE e.task = troupe.journal_key(x.task) AND e.seq = x.seq))`
	inCluster = ` FROM troupe.cluster c`
)

// readHistory reads the store's history, and whether remembered writes are missing.
func (s *database) readHistory(ctx context.Context, conn *pgx.Conn, commits bool) (history string, lost bool, err error) {
	incarnation, renewals, tasks, seqs, eras := s.witness.queryParams()
	query, args := lookForLease, []any{incarnation, renewals}
	if commits && len(tasks) > 0 {
		query, args = lookForCommits, append(args, tasks, seqs, eras)
	}
	if err = conn.QueryRow(ctx, s.schema.qualify(query+inCluster), args...).Scan(&history, &lost); err != nil {
		err = fmt.Errorf("look for what was stored: %w", err)
	}
	return history, lost, err
}

// checkConnection checks a new connection before use. Connections for leases do not wait for the
// journal, unless the server is different.
func (s *database) checkConnection(ctx context.Context, conn *pgx.Conn, commits bool) error {
	w, o := &s.witness, originOfConn(conn.PgConn())
	history, lost, err := s.readHistory(ctx, conn, commits)
	if err != nil {
		return err
	}
	if w.isExpected(o, history, lost) {
		s.guard.recordOrigin(o)
		return nil
	}
	w.begins.Lock()
	defer w.begins.Unlock()
	// another connection may have been checked meanwhile
	history, lost, err = s.readHistory(ctx, conn, true)
	if err != nil || w.isExpected(o, history, lost) {
		return err
	}
	cause := w.describeCause(serverOf(conn.PgConn()), o)
	if w.knowsHistory(history) { // else another member has begun the history for the same reason
		if err := s.beginHistory(ctx, conn, history, 0); err != nil {
			return fmt.Errorf("begin another history: %w", err)
		}
	}
	if err := conn.QueryRow(ctx, s.schema.qualify("SELECT history"+inCluster)).Scan(&history); err != nil {
		return fmt.Errorf("begin another history: %w", err)
	}
	w.recordHistory(o, history, &persistence.Takeover{Cause: cause, Lost: lost})
	s.memory.forgetAll()
	s.larges.clearAll()
	s.guard.recordOrigin(o)
	return nil
}

// isExpected reports whether a new connection leads to the same server as before, with no
// remembered write missing. The first connection is always expected.
func (w *historyChecker) isExpected(o serverOrigin, history string, lost bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.connected {
		w.connected, w.from = true, o
	}
	if o != w.from || lost {
		return false
	}
	w.addHistory(history)
	return true
}

// renewedIn records a confirmed renewal and its history.
func (w *historyChecker) renewedIn(p persistence.Pulse, incarnation string, before int64) {
	w.recordRenewal(incarnation, p.Renewals, before)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addHistory(p.History)
}

// addHistory remembers a history. There are only a few, because a new one begins only when the
// store goes back in time.
func (w *historyChecker) addHistory(history string) {
	if w.histories == nil {
		w.histories = map[string]bool{}
	}
	w.histories[history] = true
}

// knowsHistory reports whether this process has seen a history.
func (w *historyChecker) knowsHistory(history string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.histories[history]
}

// describeCause returns the reason why a new connection is not expected.
func (w *historyChecker) describeCause(server string, o serverOrigin) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case o.system != w.from.system:
		return server + " is another database cluster than before"
	case o.timeline != w.from.timeline:
		return fmt.Sprintf("%s has taken over: it is on timeline %d, and the server before was "+
			"on timeline %d", server, o.timeline, w.from.timeline)
	}
	return "something that was confirmed is not there"
}

// recordHistory records that a new history began on a server.
func (w *historyChecker) recordHistory(o serverOrigin, history string, t *persistence.Takeover) {
	w.forgetAll()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addHistory(history)
	w.from, w.takeoverHistory, w.takeover = o, history, t
}

// leadsThere reports whether a connection leads to the server of the newest checked connection.
func (w *historyChecker) leadsThere(conn *pgx.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return originOfConn(conn.PgConn()) == w.from
}

// takeoverTo returns the change of the server that led to a history; nil if this process has seen
// none.
func (w *historyChecker) takeoverTo(history string) *persistence.Takeover {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.takeoverHistory != history {
		return nil
	}
	return w.takeover
}

func (s *database) BeginHistory(ctx context.Context, known string, kept int64) error {
	defer s.memory.forgetAll()
	defer s.larges.clearAll()
	return wrapError("begin another history", s.leases.withConn(ctx, func(conn *pgxpool.Conn) error {
		return s.beginHistory(ctx, conn.Conn(), known, kept)
	}))
}

// beginHistory begins a new history. It locks members as joins, batches and deletions of flows do,
// so none of these is in progress when the members end.
func (s *database) beginHistory(ctx context.Context, conn *pgx.Conn, known string, kept int64) error {
	const begins = "EXISTS (SELECT FROM troupe.cluster WHERE history = $1)"
	var batch pgx.Batch
	batch.Queue(lockJoining, s.schema.lockID(joining))
	batch.Queue("SELECT FROM troupe.members WHERE fenced_at = 0 AND "+begins+" ORDER BY incarnation FOR UPDATE", known)
	batch.Queue(lockCluster)
	batch.Queue("UPDATE troupe.members SET fenced_at = "+now+" WHERE fenced_at = 0 AND "+begins, known)
	batch.Queue("UPDATE troupe.shards SET owner = '', had = owner WHERE owner <> '' AND "+begins, known)
	batch.Queue(`UPDATE troupe.cluster SET generation = generation + 1, history = md5(random()::text || clock_timestamp()::text),
		kept = coalesce(nullif($2::bigint, 0), (SELECT max(until - ttl) FROM troupe.leases), 0) WHERE history = $1`, known, kept)
	return conn.SendBatch(ctx, s.schema.qualifyBatch(&batch)).Close()
}
