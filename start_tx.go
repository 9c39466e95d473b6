package troupe

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe/actors"
	"github.com/troupe-engine/troupe/persistence"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// StartTx begins a task within a transaction of the program, on the database that the engine's
// store is in: the task exists when that is committed, and never otherwise. It begins then, at
// whatever member owns it: within a few hundredths of a second as long as this program lives,
// within about a second else. Options, and what is checked, are those of Start; of a key the
// transaction that comes first decides, others wait for it.
//
// Until the end of the transaction the flow cannot be deleted (ErrConflict, after ten seconds), and
// time runs: a limit of the whole task counts from this call. It works with pgx alone, whatever
// search_path the transaction has, and not with a store of SQLite, which is one member's own
// (errors.ErrUnsupported).
func (e *Engine) StartTx(ctx context.Context, tx pgx.Tx, name string, params any, options ...Option) (id string, err error) {
	if e.store.Locked() {
		return "", &classifiedError{"StartTx: a store of SQLite takes part in no transaction of the program: use a store of PostgreSQL (postgres://…), or Start with a key",
			[]error{errors.ErrUnsupported, ErrInvalid}}
	}
	local, err := e.localMember(ctx)
	if err != nil {
		return "", err
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
	there, err := postgres.Begin(ctx, e.bareStore, tx, &first.Commit)
	switch {
	case errors.Is(err, persistence.ErrNoVersion):
		return "", newNotFoundError(err, "there is no flow %.140q any more: it was deleted", name)
	case err != nil:
		return "", fmt.Errorf("starting a task of %.140q in a transaction: %w", name, err)
	case there != nil:
		return there.ID, toTypedError(first.Same(there))
	}
	e.expected.addTask(e, first.Commit.Task)
	return first.Commit.Task, nil
}

// localMember is the member in this process.
func (e *Engine) localMember(ctx context.Context) (*actors.Member, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.ensureMember(ctx); err != nil {
		return nil, err
	}
	return e.member, nil
}
