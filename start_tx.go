package troupe

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// StartTx creates a task within a transaction of the program, on the database of the engine's
// store: the task exists if and only if that transaction commits.
//
// The task then starts at the member that owns it: within a few hundredths of a second while this
// program lives, otherwise within about a second. Options and checks are those of Start. If several
// transactions use the same key, the first one decides, and the others wait for it.
//
// Until the transaction ends, the flow cannot be deleted (ErrConflict after ten seconds), and time
// runs: a time limit of the whole task counts from this call. StartTx works only with pgx, with any
// search_path of the transaction. It does not work with SQLite, whose store belongs to one member
// (errors.ErrUnsupported).
func (e *Engine) StartTx(ctx context.Context, tx pgx.Tx, name string, params any, options ...Option) (id string, err error) {
	if e.stores.Newest.Locked() {
		return "", &classifiedError{"StartTx: a store of SQLite takes part in no transaction of " +
			"the program: use a store of PostgreSQL (postgres://…), or Start with a key",
			[]error{errors.ErrUnsupported, ErrInvalid}}
	}
	local, err := e.localMember(ctx)
	if err != nil {
		return "", err
	}
	if err := engine.CheckStore(local); err != nil {
		return "", toTypedError(err)
	}
	n, err := e.newTask(ctx, name, params, options)
	if err != nil {
		return "", err
	}
	first, err := local.Begin(ctx, n)
	if err != nil {
		return "", toTypedError(err)
	}
	if first.Repeats != nil {
		return first.Repeats.ID, toTypedError(first.Same(first.Repeats))
	}
	there, err := postgres.Begin(ctx, e.stores.Database, tx, &first.Commit)
	switch {
	case errors.Is(err, persistence.ErrNoVersion):
		return "", newNotFoundError(err, "there is no flow %.140q any more: it was deleted", name)
	case err != nil:
		return "", fmt.Errorf("starting a task of %.140q in a transaction: %w", name, err)
	case there != nil:
		return there.ID, toTypedError(first.Same(there))
	}
	e.expected.Add(first.Commit.Task)
	return first.Commit.Task, nil
}

// localMember returns the member in this process.
func (e *Engine) localMember(ctx context.Context) (*actors.Member, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	return e.member, nil
}
